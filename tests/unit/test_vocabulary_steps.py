"""What goes by the number of the step is only shown, under whatever name, and whatever asks for it."""

from __future__ import annotations

import pytest
from test_vocabulary import outside, tape

STEPS = {
    "tuple": ("n = (0, 0)", "n = (n[0] + 1, 0)", "n[0] < 6"),
    "list": ("n = [0]", "n = [n[0] + 1]", "n[0] < 6"),
    "table": ("n = {'a': 0}", "n = {'a': n['a'] + 1}", "n['a'] < 6"),
    "array": ("n = np.zeros(3)", "n = n + 1", "n.sum() < 6"),
    "rolled array": ("n = np.arange(3)", "n = np.roll(n, 1)", "n.min() < 2"),
    "tensor": ("n = tf.zeros([])", "n = n + 1", "float(n) < 6"),
    "text": ("n = 'abcdef'", "n = n.replace('a', '', 1)", "len(n) > 3"),
    "lambda": ("n = 0; g = lambda k: k + 1", "n = g(n)", "n < 6"),
    "last one": ("n = 0", "n = number", "n < 6"),
    "two names": ("n, m = 0, 1", "n, m = m, n + m", "n < 6"),
    "sign": ("n = 1", "n = -n", "n > 0"),
    "flag": ("n = True", "n = not n", "n"),
    "counter": ("n = 0", "n += 1", "n < 6"),
}
DECIDES = {
    "an if": "if {}: step(a=x[:8], b=y[:8])",
    "a loop": "for _ in range(int({})): mean.reset_state()",
    "a size": "tf.keras.layers.Dense(1 + int({}))",
    "a rate": "tf.keras.optimizers.SGD(0.1 * ({}))",
    "data": "data.take(int({}))",
    "a draw": "rng.normal(size=int({}))",
    "a flag": "model.trainable = {}",
    "an entry": "x[int({}) : 9]",
    "a choice": "print(tf.keras.Sequential() if {} else model)",
}


@pytest.mark.parametrize("decides", DECIDES)
@pytest.mark.parametrize("count", STEPS)
def test_what_goes_by_the_number_of_the_step_is_only_shown(count: str, decides: str) -> None:
    """Of steps there are fewer where each has the batches of all workers."""
    before, each, asked = STEPS[count]
    assert outside(tape(before=before, each=each, epoch=DECIDES[decides].format(asked)))
    assert outside(tape(before=before, each=DECIDES[decides].format(asked) + f"\n    {each}"))
    if "[" not in each:
        assert not outside(tape(before=before, each=each, epoch=f"if {asked}:\n        print({asked})"))
