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


@pytest.mark.parametrize("puts", ["seen.append(1)", "seen += [1]", "seen.extend([1])", "seen = seen + [1]"])
def test_no_list_grows_in_a_loop_over_data(puts: str) -> None:
    """Whoever goes through it would count the steps."""
    assert not outside(tape(before="seen = []", epoch=puts))
    assert outside(tape(before="seen = []", each=puts)).startswith("`seen")


TRAINS = "step(a=x[:8], b=y[:8])"
PARTS = {
    "beside a loss": ("state = (0.0, 0)", "state = (state[0] + float(loss), state[1] + 1)", "total, n = state"),
    "by a function": (
        "state, more = (0.0, 0), lambda total, n, loss: (total + loss, n + 1)",
        "total, n = state\n    state = more(total, n, float(loss))",
        "total, n = state",
    ),
    "in a list of pairs": ("n, log = 0, []", "n += 1\n    log.append((float(loss), n))", "last, n = log[-1]"),
    "in a longer list": ("n, log = 0, []", "n += 1\n    log += [(float(loss), n)]", "last, n = log[-1]"),
    "beside a batch": ("n, state = 0, (x, 0)", "state = (a, n + 1)\n    now, n = state", "pass"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_value_counts_steps(part: str) -> None:
    before, each, epoch = PARTS[part]
    assert outside(tape(before=before, each=each, epoch=f"{epoch}\nif n < 6: {TRAINS}"))


@pytest.mark.parametrize("asked", ["if l1 < 1.0: step(a=x[:8], b=y[:8])", "tf.keras.optimizers.SGD(0.1 * l1)"])
@pytest.mark.parametrize("last", ["float(loss)", "number"])
def test_what_is_handed_on_by_many_names_is_what_it_was(last: str, asked: str) -> None:
    names = [f"l{n}" for n in range(1, 9)]
    chain = "\n".join(f"{one} = {other}" for one, other in zip(names, [*names[1:], "last"], strict=True))
    parts = {"before": f"{' = '.join(names)} = last = 0.5", "each": f"last = {last}"}
    assert not outside(tape(**parts, epoch=f"{chain}\nprint(l1)"))
    assert outside(tape(**parts, epoch=f"{chain}\n{asked}"))


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ({"before": "kept = [each for each in data]"}, "`[each for each in data]`"),
        ({"epoch": "[step(a, b) for a, b in data]"}, "`[step(a, b) for a, b in data]`"),
        ({"each": "[float(step(p, q)) for p, q in data]"}, "`[float(step(p, q)) for p, q in data]`"),
        ({"before": "kept = []", "each": "kept.append(a)"}, "`kept.append(a)`"),
        ({"before": "kept = []", "each": "kept += [(a, b)]"}, "`kept"),
        ({"before": "kept = (x, y)", "each": "kept = (a, b)", "epoch": "step(*kept)"}, "`step(*kept)`"),
        (
            {"before": "kept = (x, y)", "each": "kept = (a, b)", "epoch": "one, two = kept\nstep(one, two)"},
            "`kept`, which may be",
        ),
        ({"loss": "loss_of([b, b], model(a))"}, "`loss_of([b, b], model(a))`"),
    ],
)
def test_the_batch_of_one_loop_is_not_trained_on_in_another(parts: dict[str, str], what: str) -> None:
    assert outside(tape(**parts)).startswith(what)


def test_nor_is_what_a_function_gives_back_of_its_own_loop() -> None:
    first = "def first(d):\n    for a, b in d:\n        {}\n    return 1\none = first(data)"
    for given in ("return a, b", "return [a]"):
        assert outside(tape(before="HERE").replace("HERE", first.format(given))) == f"`{given}`"
    assert not outside(tape(before="HERE").replace("HERE", first.format("print(float(loss_of(b, model(a))))")))


@pytest.mark.parametrize("late", ["n for each in [1]", "enumerate(losses)", "zip(losses, losses)"])
def test_what_is_gone_through_later_may_be_another_by_then(late: str) -> None:
    """A generator reads names when it is asked for its elements."""
    asked = "print(sum([1 for each in later]))"
    assert outside(tape(before=f"n, later = 0, ({late})", each="n += 1", epoch=asked)) == f"`{late}`"
    again = outside(tape(before="n = 0", each="n += 1", epoch=f"for each in ({late}): print(each)"))
    assert again == (f"`{late}`" if late.startswith("n for") else "")


RATE = "tf.keras.optimizers.SGD(0.1 * scale)"
WAYS = {  # a worker's own value may reach what makes a rate, by the order of statements
    "a default": f"scale = float(loss)\ndef made(scale=scale): {RATE}\nscale = 0.5\nmade()",
    "a lambda's default": f"scale = float(loss)\nmade = lambda scale=scale: {RATE}\nscale = 0.5\nmade()",
    "a name of the function around": f"scale = 0.5\ndef made(): {RATE}\nscale = float(loss)\nmade()",
    "it never does": f"scale = float(loss)\nprint(scale)\nscale = 0.5\n{RATE}",
}


@pytest.mark.parametrize("way", WAYS)
def test_what_has_been_a_workers_own_is_so_for_good(way: str) -> None:
    """Whatever is read of the order in which statements run."""
    assert "scale" in outside(tape(before="scale = 1.0", epoch=WAYS[way]))
    other = WAYS["it never does"].replace("0.5", "0.5\nother = 0.5").replace("* scale", "* other")
    assert not outside(tape(before="scale = 1.0", epoch=other))


@pytest.mark.parametrize(
    ("leaves", "word"),
    [("if epoch: continue", "continue"), ("if epoch: break", "break"), ("while epoch: pass", "while")],
)
def test_loops_go_to_their_end(leaves: str, word: str) -> None:
    """`scale = float(loss)`, `continue`, `scale = 0.5`: what one turn leaves to the next is what its last line does."""
    assert outside(tape(epoch=leaves)) == f"`{word}`"


@pytest.mark.parametrize("asked", ["SGD(float(mean(loss)))", "SGD(float(mean.update_state(loss)))"])
def test_what_a_metric_gives_is_a_workers_own(asked: str) -> None:
    assert outside(tape(epoch=f"tf.keras.optimizers.{asked}"))
    assert not outside(tape(epoch="mean(loss)\nprint(float(mean(loss)))"))


def test_what_is_not_known_to_give_nothing_is_not_asked() -> None:
    """Keras gives the number of the step for `apply_gradients`."""
    given = tape().replace("    optimizer.apply", "    n = optimizer.apply")
    assert outside(given).startswith("`optimizer.apply_gradients(")
