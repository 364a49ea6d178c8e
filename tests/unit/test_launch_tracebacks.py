"""Tracebacks in what a rank has written, and TensorFlow's copies of them."""

from tfdp.runtime.launch import tracebacks

SITE = "/v/lib/python3.11/site-packages"
WRAPPED = f"""\
own line
W0000 00:00:1795567134.251332   12 op_kernel.cc:1845] UNKNOWN: JobAborted: rank 0 was in allreduce
Traceback (most recent call last):

  File "{SITE}/tensorflow/python/ops/script_ops.py", line 269, in __call__
    ret = func(*args)

tfdp.runtime.foundation.errors.JobAborted: rank 0 was in allreduce


\t [[{{{{function_node __inference_step_1}}}}{{{{node PyFunc}}}}]]
another own line
Traceback (most recent call last):
  File "/home/me/train.py", line 15, in <module>
    model.fit(data)
  File "{SITE}/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "{SITE}/tensorflow/python/eager/execute.py", line 53, in quick_execute
    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,
  ^^^^^^^^^^^^^^^^^^^^^
tensorflow.python.framework.errors_impl.UnknownError: Graph execution error:

Detected at node PyFunc defined at (most recent call last):
  File "/home/me/train.py", line 15, in <module>

  File "{SITE}/keras/src/backend/tensorflow/trainer.py", line 399, in fit

JobAborted: rank 0 was in allreduce
Traceback (most recent call last):

  File "{SITE}/tensorflow/python/ops/script_ops.py", line 269, in __call__
    ret = func(*args)

tfdp.runtime.foundation.errors.JobAborted: rank 0 was in allreduce


\t [[{{{{node PyFunc}}}}]] [Op:__inference_step_2]
at exit""".encode().split(b"\n")
TOLD = WRAPPED[WRAPPED.index(b"tensorflow.python.framework.errors_impl.UnknownError: Graph execution error:") : -1]


def test_a_told_exception_says_where_its_message_ends_and_what_is_a_copy_of_it():
    found = tracebacks.ending(WRAPPED, TOLD)
    assert found.before == [b"own line", b"another own line"]
    assert found.after == [b"at exit"]
    assert found.traceback[0] == b"Traceback (most recent call last):"
    assert found.traceback[-len(TOLD) :] == TOLD
    assert tracebacks.raised(found.traceback) == "JobAborted: rank 0 was in allreduce"
    assert tracebacks.names(found.traceback, ["JobAborted"])
    assert not tracebacks.names(found.traceback, ["KeyboardInterrupt"])
    assert tracebacks.folded(found.traceback)[:5] == [
        *found.traceback[:3],
        "  … 2 frames in keras, tensorflow …".encode(),
        TOLD[0],
    ]
    assert tracebacks.place(found.traceback).place == "/home/me/train.py:15"


CHAIN = b"""\
Traceback (most recent call last):
  File "/home/me/data.py", line 3, in load
    open(path)
FileNotFoundError: no data

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    load(path)
  File "/home/me/data.py", line 5, in load
    raise ValueError(path) from None
ValueError: data.csv
more""".split(b"\n")


def test_without_it_a_message_is_one_line_and_a_chain_is_one_traceback():
    assert tracebacks.ending([*CHAIN[:-1], b""]) == tracebacks.Ending([], CHAIN[:-1], [b""])
    assert tracebacks.ending(CHAIN) == tracebacks.Ending(CHAIN, [], [])  # printed, and the script went on
    assert tracebacks.ending(CHAIN, [b"ValueError: data.csv"]) == tracebacks.Ending([], CHAIN[:-1], [b"more"])
    assert tracebacks.folded(CHAIN) == CHAIN
    assert tracebacks.raised(CHAIN[:-1]) == "ValueError: data.csv"
    assert tracebacks.place(CHAIN).place == "/home/me/data.py:5, in load"


def test_a_syntax_error_has_no_header():
    lines = [b'  File "/home/me/train.py", line 3', b"    x = = 1", b"        ^", b"SyntaxError: invalid syntax"]
    assert tracebacks.may_begin(lines[0])
    assert tracebacks.ending(lines).traceback == lines
    assert tracebacks.raised(lines) == "SyntaxError: invalid syntax"
    assert tracebacks.place(lines).place == "/home/me/train.py:3"


def test_an_installed_project_is_the_users_where_nothing_else_is():
    lines = [
        b"Traceback (most recent call last):",
        b'  File "<frozen runpy>", line 198, in _run_module_as_main',
        f'  File "{SITE}/project/train.py", line 4, in main'.encode(),
        b"    model.fit(data)",
        f'  File "{SITE}/keras/src/trainer.py", line 399, in fit'.encode(),
        b"ValueError: shapes",
    ]
    assert tracebacks.place(lines).place == f"{SITE}/project/train.py:4, in main"
    assert tracebacks.folded(lines) == [
        lines[0],
        "  … 1 frame in python …".encode(),
        *lines[2:4],
        "  … 1 frame in keras …".encode(),
        lines[5],
    ]


def test_of_a_crash_the_thread_that_crashed_is_shown():
    lines = b"""\
Fatal Python error: Segmentation fault

Thread 0x00007f0000000001 (most recent call first):
  File "/v/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/v/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/train.py", line 5 in <module>

Extension modules: numpy.core._multiarray_umath (total: 1)""".split(b"\n")
    assert tracebacks.ending(lines).traceback == lines
    assert tracebacks.place(lines).place == "/home/me/train.py:5"
    assert tracebacks.folded(lines) == [
        lines[0],
        lines[5],
        "  … 1 frame in python …".encode(),
        lines[7],
    ]


def test_an_interrupted_call_of_tensorflow_logs_one_exception_and_raises_another():
    logged = WRAPPED[: WRAPPED.index(b"another own line") + 1]
    raised = [
        b"Traceback (most recent call last):",
        b'  File "/home/me/train.py", line 15, in <module>',
        b"RuntimeError: pybind11::error_already_set: ORIGINAL Error REPLACED BY KeyboardInterrupt: <EMPTY MESSAGE>",
        b"",
        b"At:",
        b"  /home/me/train.py(15): <module>",
        b"",
    ]
    found = tracebacks.ending([*logged, *raised], raised[2:])
    assert (found.traceback, found.after) == (raised, [])
    assert tracebacks.names(found.traceback, ["KeyboardInterrupt"])
    assert tracebacks.without_logged(found.before, ["JobAborted"]) == [b"own line", b"another own line"]
    assert tracebacks.without_logged(found.before, ["StallError"]) == found.before


GROUP = b"""\
  + Exception Group Traceback (most recent call last):
  |   File "/home/me/train.py", line 6, in <module>
  |     raise ExceptionGroup("many things", errors)
  | ExceptionGroup: many things (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/me/data.py", line 4, in load
    |     load()
    | tfdp.runtime.foundation.errors.JobAborted: rank 0 was in allreduce
    +---------------- 2 ----------------
    | ValueError: two
    +------------------------------------""".split(b"\n")


def test_of_a_group_of_exceptions_the_group_is_the_cause():
    assert tracebacks.may_begin(GROUP[0])
    assert tracebacks.ending([b"own", *GROUP, b""]) == tracebacks.Ending([b"own"], GROUP, [b""])
    told = [GROUP[3].removeprefix(b"  | ")]
    assert tracebacks.ending([*GROUP, b"at exit"], told) == tracebacks.Ending([], GROUP, [b"at exit"])
    assert tracebacks.raised(GROUP) == "ExceptionGroup: many things (2 sub-exceptions)"
    assert tracebacks.place(GROUP).place == "/home/me/train.py:6"
    assert tracebacks.names(GROUP, ["JobAborted"])
    assert tracebacks.folded(GROUP) == GROUP
    led = [*GROUP, *CHAIN[4:7], *CHAIN[7:-1]]  # a group that another exception has followed
    assert tracebacks.ending(led).traceback == led
    assert tracebacks.raised(led) == "ValueError: data.csv"
    assert tracebacks.place(led).place == "/home/me/data.py:5, in load"
    assert tracebacks.ending(led, [b"ValueError: data.csv"]).traceback == led
    leads = [*CHAIN[:4], *CHAIN[4:7], *GROUP]
    assert tracebacks.ending(leads).traceback == leads
    assert tracebacks.ending(leads, told).traceback == leads
    assert tracebacks.raised(leads) == "ExceptionGroup: many things (2 sub-exceptions)"
    assert tracebacks.place(leads).place == "/home/me/train.py:6"


def test_what_fails_while_an_exception_is_handled_is_the_last_of_the_chain():
    assert tracebacks.names(CHAIN, ["FileNotFoundError"])
    assert not tracebacks.names(tracebacks.last(CHAIN), ["FileNotFoundError"])
