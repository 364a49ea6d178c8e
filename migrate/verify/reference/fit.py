"""The data of Keras' `fit` in the reference script: what workers drop is dropped, N batches of a source make one."""

from __future__ import annotations

from collections.abc import Iterator

from ....rules._base import Outcome, SetArg
from ... import build
from ...facts.keras import POSITIONS, FitData, batch_size_of, held_out_by
from ...facts.script import Script

_ARRAYS = '''\
def tfdp_is_array(part):
    """Whether a part of a list is an input of its own, not a row of one."""
    return part is None or isinstance(part, (dict, tuple)) or len(getattr(part, "shape", ())) > 0


def tfdp_each(data, change):
    """A change made to each array of a structure."""
    if data is None:
        return None
    if isinstance(data, dict):
        return {{key: tfdp_each(part, change) for key, part in data.items()}}
    if isinstance(data, tuple) or (isinstance(data, list) and all(map(tfdp_is_array, data))):
        return type(data)([tfdp_each(part, change) for part in data])
    return change(data)


def tfdp_even(data, validation_split=0.0):
    """The rows of arrays that {size} workers share evenly: the last n mod {size} are dropped."""

    def change(rows):
        end = int(len(rows) * (1.0 - validation_split))
        return getattr(rows, "iloc", rows)[: end - end % {size}]

    return tfdp_each(data, change)


def tfdp_held_out(data, validation_split):
    """The rows that Keras holds out for validation."""
    return tfdp_each(data, lambda rows: getattr(rows, "iloc", rows)[int(len(rows) * (1.0 - validation_split)) :])
'''
_SOURCES = '''\
def tfdp_join(group):
    """{size} batches as one; None where they are of unequal sizes."""
    rows = {{len(tfdp_tf.nest.flatten(batch)[0]) for batch in group}}
    if len(rows) > 1:
        return None
    lengths = [[tuple(getattr(part, "shape", ())[1:]) for part in tfdp_tf.nest.flatten(batch)] for batch in group]
    if any(each != lengths[0] for each in lengths):
        raise ValueError("these batches have lengths of their own, so {size} of them are no batch of one process; "
                         "use --batch global, where the workers share each batch")
    return tfdp_tf.nest.map_structure(tfdp_rows_of_all, *group)


def tfdp_rows_of_all(*parts):
    if parts[0] is None or isinstance(parts[0], (tfdp_tf.Tensor, tfdp_tf.RaggedTensor)):
        return None if parts[0] is None else tfdp_tf.concat(parts, 0)
    return tfdp_np.concatenate(parts)


def tfdp_part(group):
    """The rows of a batch that {size} workers share evenly; None where there are fewer than {size}."""
    rows = len(tfdp_tf.nest.flatten(group[0])[0])
    if rows < {size}:
        return None
    return tfdp_tf.nest.map_structure(lambda part: None if part is None else part[: rows - rows % {size}], group[0])


def tfdp_groups(batches, split):
    """What the workers take in one step, from one batch after the other."""
    group = []
    for batch in batches:
        group.append(batch)
        if len(group) == (1 if split else {size}):
            taken = tfdp_part(group) if split else tfdp_join(group)
            if taken is not None:
                yield taken
            group = []


class TfdpSequence(tfdp_tf.keras.utils.Sequence):
    """A sequence of batches as the workers take them."""

    def __init__(self, source, split):
        super().__init__()
        self.source, self.split, self.width = source, split, 1 if split else {size}
        self.groups = len(source) // self.width
        if len(source) % self.width == 0 and self.groups and self.last_is_left_out():
            self.groups -= 1

    def last_is_left_out(self):
        if self.width > 1 and hasattr(self.source, "index_generator"):  # to read an item would draw random numbers
            return bool(self.source.n % self.source.batch_size)
        return self.group(self.groups - 1) is None

    def group(self, index):
        read = [self.source[index * self.width + i] for i in range(self.width)]
        return tfdp_part(read) if self.split else tfdp_join(read)

    def __len__(self):
        return self.groups

    def __getitem__(self, index):
        return self.group(index)

    def on_epoch_end(self):
        self.source.on_epoch_end()


def tfdp_any_rows(spec):
    shape = None if spec.shape.rank is None else [None, *spec.shape[1:]]
    if isinstance(spec, tfdp_tf.RaggedTensorSpec):
        return tfdp_tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return tfdp_tf.TensorSpec(shape, spec.dtype)


def tfdp_batches_of_all(source, split=False, only_if=True):
    """A source of batches that gives in one step what {size} workers take together; with `split` each a part of one."""
    if not only_if:
        return source
    if isinstance(source, tfdp_tf.data.Dataset):
        signature = tfdp_tf.nest.map_structure(tfdp_any_rows, source.element_spec)
        joined = tfdp_tf.data.Dataset.from_generator(lambda: tfdp_groups(source, split), output_signature=signature)
        if int(source.cardinality()) < 0:
            return joined
        return joined.apply(tfdp_tf.data.experimental.assert_cardinality(sum(1 for _ in tfdp_groups(source, split))))
    if hasattr(source, "__getitem__"):
        return TfdpSequence(source, split)
    return tfdp_groups(source, split)
'''


def helpers(script: Script) -> list[str]:
    """What the reference needs above it: format strings of `size`."""
    parts = [_ARRAYS] if any(f.arrays for f in script.fitted.data) else []
    if any(d.batches for d in script.shard_points):
        parts += ["import numpy as tfdp_np\n", _SOURCES]
    return parts


def outcomes(script: Script, size: int, per_worker: bool) -> Iterator[Outcome]:
    """Arrays, batch sizes and numbers of steps; what shards batches is edited with the other shard points."""
    for fit in script.fitted.data:
        yield from _arrays(script, fit)
        if per_worker and fit.arrays:
            change = _batch_size(size)
            yield SetArg(fit.fit.call, "batch_size", change, "the global batch", position=POSITIONS["batch_size"])
    for steps in script.steps.of_fits if per_worker else ():
        change = _steps(steps.down)
        yield SetArg(steps.call, steps.keyword, change, "the divided number of steps", position=steps.position)


def _arrays(script: Script, fit: FitData) -> Iterator[Outcome]:
    code = script.index.code
    split = code(fit.split.value) if fit.split is not None else None
    keywords = {"validation_split": split} if split is not None else {}
    for name, _ in fit.arrays:
        change = build.calling("tfdp_even", **keywords)
        yield SetArg(fit.fit.call, name, change, "drop what the workers drop", position=POSITIONS[name])
    if split is not None:
        held_out = build.replacing(held_out_by("tfdp_held_out", (code(value) for _, value in fit.arrays), split))
        message = "hold out what Keras holds out"
        yield SetArg(fit.fit.call, "validation_split", held_out, message, becomes="validation_data")


def _batch_size(size: int) -> build.Change:
    return lambda value: build.times(batch_size_of(value), str(size))


def _steps(down: bool) -> build.Change:
    return build.calling("tfdp_steps", **({"down": "True"} if down else {}))
