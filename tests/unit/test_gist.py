"""What an exception says in one line, whoever has wrapped it."""

import pytest

from tfdp.runtime.foundation import gist

KERAS = """ValueError: Exception encountered when calling Net.call().

\x1b[1mthe layer gives rows away\x1b[0m

Arguments received by Net.call():
  • x=tf.Tensor(shape=(8, 6), dtype=float64)"""
AUTOGRAPH = """ValueError: in user code:

    File "/home/me/train.py", line 3, in step  *
        net(x)
    File "/home/me/net.py", line 9, in call
        KeyError: a line of code

    ValueError: Exception encountered when calling Net.call().

    \x1b[1mthe layer gives rows away\x1b[0m

    Arguments received by Net.call():
      • x=tf.Tensor(shape=(8, 6), dtype=float64)
"""
GRAPH = """InvalidArgumentError: Graph execution error:

Detected at node PyFunc
TfdpError: rank 0 has another batch
\t [[{{node PyFunc}}]]"""


@pytest.mark.parametrize("said", [KERAS, AUTOGRAPH])
def test_keras_and_autograph_put_words_around_it(said: str) -> None:
    assert gist(said) == "ValueError: the layer gives rows away"


def test_of_a_graph_the_error_that_python_has_raised() -> None:
    assert gist(GRAPH) == "TfdpError: rank 0 has another batch"


@pytest.mark.parametrize(
    "said",
    ["ValueError: no file", "KeyError", "", "ValueError: in user code:", "E: Exception encountered when calling x"],
)
def test_what_nobody_has_wrapped_is_its_first_line(said: str) -> None:
    assert gist(said) == said
    assert gist(f"{said}\nmore") == said or "Exception encountered" in said


def test_of_an_operation_that_fails_it_is_what_the_operation_says() -> None:
    said = """InvalidArgumentError: Graph execution error:

Detected at node check/Assert defined at (most recent call last):
  File "train.py", line 3, in <module>

assertion failed: [the loss is given different lengths] [1] [5]
\t [[{{node check/Assert}}]] [Op:__inference_step_18]"""
    found = "InvalidArgumentError: assertion failed: [the loss is given different lengths] [1] [5]"
    assert gist(said) == found
    assert gist(said.partition("assertion")[0]) == "InvalidArgumentError: Graph execution error:"
