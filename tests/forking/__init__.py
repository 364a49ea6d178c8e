"""Python processes that begin as forks of one that has imported TensorFlow, for tests of what their programs compute.

Importing TensorFlow and Keras takes seconds of processor time in every process, which is most of what a proof takes.
While the fixture `forking` (tests/conftest.py) is in use, `subprocess` starts Python programs so: a parent process that
has imported TensorFlow, and has run nothing of it, forks for each of them. What is forked is a process of its own: it
has the arguments, environment, folder, streams and signals that it would have, and its starter waits for it as for any
other. A launcher that is forked forks its ranks in turn. With TFDP_TESTS_EXEC=1 nothing is forked.

What a fork cannot show: how processes start and end, what is imported when, memory, and orders of sets that differ from
process to process. Tests of those do not use the fixture.

    client.py   in the process of pytest: `subprocess.Popen` as long as the fixture is in use
    parent.py   the process that forks
    program.py  what a fork does to become the process that was asked for
"""
