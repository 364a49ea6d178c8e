"""The runtime with one line changed: each such mutant trains something else, and kinds of training must show it."""

import ast
import pathlib
import shutil
import typing

import tfdp.runtime

ROOM = "calls"


class Mutant(typing.NamedTuple):
    """A mutation of `runtime/calls`.

    old: stands exactly once in the module; `new` takes its place.
    kinds: some of which must fail on two workers, by a difference; where `ends`, by what stops it.
    """

    name: str
    module: str
    old: str
    new: str
    kinds: tuple[str, ...]
    ends: bool = False

    def package(self, folder):
        """A copy of the runtime with this mutation, for PYTHONPATH."""
        original = pathlib.Path(tfdp.runtime.__file__).parent
        copied = pathlib.Path(folder, "tfdp", "runtime")
        shutil.copytree(original, copied, ignore=shutil.ignore_patterns("__pycache__"))
        path = copied / ROOM / self.module
        path.write_text(self.changed(path.read_text()))
        return str(folder)

    def changed(self, text):
        """The module's text with the mutation, which Python can still read."""
        assert text.count(self.old) == 1, f"{self.name}: {self.module} has {text.count(self.old)} of {self.old!r}"
        changed = text.replace(self.old, self.new)
        ast.parse(changed)
        return changed


MUTANTS = (
    Mutant(
        "gradient of `every` without N",
        "rows.py",
        "return _times(_without_padding(own(upstream, split, name), split))",
        "return _without_padding(own(upstream, split, name), split)",
        ("mean_square", "gradients_clipped_by_global_norm"),
    ),
    Mutant(
        "gradient of `own` without its share",
        "rows.py",
        "return every(_over(upstream), split, name)",
        "return every(upstream, split, name)",
        ("halves_put_together",),
    ),
    Mutant(
        "padded rows counted in gradients",
        "rows.py",
        "    if split.is_even:\n        return tensor\n    real =",
        "    if True:\n        return tensor\n    real =",
        ("dropout_in_a_graph_with_uneven_rows", "normalization_of_each_row"),
    ),
    Mutant(
        "padded rows counted in statistics",
        "own_sight.py",
        "        if self._split.is_even:\n            return weights",
        "        if True:\n            return weights",
        ("batch_normalization_of_uneven_rows",),
    ),
    Mutant(
        "statistics of a worker's rows",
        "own_sight.py",
        "found = combined(*tf.unstack(stacked(packed, self._name), axis=1))",
        "found = mine",
        ("batch_normalization_of_images", "batch_normalization_of_frames"),
    ),
    Mutant(
        "spread between workers left out",
        "own_sight.py",
        "return Moments(count, mean, tf.reduce_sum(deviations, 0) + apart)",
        "return Moments(count, mean, tf.reduce_sum(deviations, 0))",
        ("batch_normalization_of_frames",),
        ends=True,  # the look sees it
    ),
    Mutant(
        "masks drawn per worker",
        "own_sight.py",
        "return taken(draw.make(tf.stack([split.whole, *sizes[1:]])), split)",
        "return draw.make(tf.stack([split.own, *sizes[1:]]))",
        ("dropout", "raw_draws_in_a_layer"),
    ),
    Mutant(
        "logits left behind",
        "carried.py",
        "    if carried.logits is not None:\n        setattr(tensor, LOGITS, change(carried.logits))",
        "",
        ("saturated_keras_softmax", "saturated_loss_in_a_layer"),
    ),
    Mutant(
        "operations left behind",
        "carried.py",
        "    if kind not in _ARGUMENTS:",
        "    if True:",
        ("saturated_raw_softmax",),
    ),
    Mutant(
        "masks left behind",
        "carried.py",
        "    if carried.mask is not None:\n        setattr(tensor, MASK, change(carried.mask))",
        "",
        ("masks_between_calls",),
    ),
    Mutant(
        "gradients of tables by own lookups",
        "own_sight.py",
        "return own(look_up(every(rows, split, self._name)), split, self._name)",
        "return look_up(rows)",
        ("embedding_with_adam", "slots_of_touched_rows_alone"),
        ends=True,  # what the workers compare sees it
    ),
    Mutant(
        "gradients in the order that is asked for",
        "averages.py",
        "    dense.sort(",
        "    sorted(dense, ",
        ("weights_in_an_order_of_each_process",),
        ends=True,
    ),
    Mutant(
        "no agreement on the look",
        "found.py",
        "low, high, refusing = map(int, transport.allreduce([said], Min, label)[0].numpy())",
        "low, high, refusing = kind, -kind, topology.size",
        ("layer_that_one_worker_takes_for_another",),
        ends=True,
    ),
    Mutant(
        "weights are as they are in a look",
        "general.py",
        "return found + _thread.moves[id(resource)]",
        "return found",
        ("mask_as_long_as_the_batch_before_weights_of_nought",),
    ),
    Mutant(
        "what has no rows is taken for the same on all workers",
        "batch_look.py",
        "return any(not factor for each, factor in pairs if isinstance(each, np.ndarray))",
        "return False",
        ("bag_of_the_whole_batch",),
    ),
    Mutant(
        "what a call uses whole gets its rows' gradient",
        "rows.py",
        "return tf.identity(value), lambda upstream: mean(upstream, name)",
        "return tf.identity(value), lambda upstream: upstream",
        ("table_that_is_learnt_by_another_model",),
        ends=True,  # what the workers compare sees it
    ),
    Mutant(
        "what operations do with rows is not asked",
        "guard.py",
        "            if found is None:\n",
        "            if found is None and False:\n",
        ("rows_that_are_mixed_with_some_probability",),
    ),
    Mutant(
        "rows may be moved along their axis",
        "row_operations.py",
        "return 0 not in seen.axes(_ALONG_AXES[kind], seen.rank(0))",
        "return True",
        ("function_with_a_mixture_by_chance",),
    ),
    Mutant(
        "code may ask how many rows there are",
        "asked.py",
        'self._guard.refuse("asks in Python how many rows there are")',
        "pass",
        ("function_of_batches_of_eight",),
    ),
    Mutant(
        "rows are handed on without a gradient of the whole",
        "rows.py",
        "return linked(rows, whole, gradient)",
        "return tf.identity(known.rows)",
        ("gradient_by_what_is_between_two_models",),
        ends=True,
    ),
    Mutant(
        "gradients by what is gathered alone",
        "own_sources.py",
        "gradients[index] if by_inside is None else source.whole(tf.convert_to_tensor(by_inside))",
        "gradients[index]",
        ("gradient_by_a_result_that_another_follows_from",),
    ),
    Mutant(
        "a result that was given is another one",
        "division.py",
        "if id(each) not in known:",
        "if True:",
        ("gradient_by_a_result_that_another_follows_from",),
    ),
    Mutant(
        "rows gathered in another order",
        "rows.py",
        "return tf.ensure_shape(_gathered(value, name)[: split.whole], shape)",
        "return tf.roll(tf.ensure_shape(_gathered(value, name)[: split.whole], shape), 1, 0)",
        ("language_model_with_metrics", "autoencoder_with_losses_of_keras"),
    ),
    Mutant(
        "all code is taken for such as only computes",
        "plain/verdicts.py",
        "return Verdict(str(refused), reads)",
        'return Verdict("", reads)',
        ("function_that_counts_its_calls", "calls_that_are_counted_in_many_ways"),
    ),
)
