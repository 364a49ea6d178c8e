"""A module that counts. Kinds of training that count by it are in `kept_apart`."""

_calls = [0]


def counted():
    """One more."""
    _calls[0] += 1
    return _calls[0]


def number():
    return _calls[0]


def reset():
    _calls[0] = 0
