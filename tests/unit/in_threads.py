"""Calls that wait, each on a thread of its own."""

import threading

PATIENCE = 30.0


def in_thread(function, *args, **kwargs):
    """Start a call that waits; returns a function that gives its result or raises its error."""
    outcome = []

    def run():
        try:
            outcome.append((function(*args, **kwargs), None))
        except Exception as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result():
        thread.join(PATIENCE)
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    return result
