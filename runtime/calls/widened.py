"""Where a step is to take the batches of all workers, the first one is looked at: does it?

A batch that the script cuts after it has been made, by a number of its own, is as large as before: `batch[:6]`, steps
over four rows at a time, over one. With N times the learning rate that is another training, and no text tells it apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import tensorflow as tf

from ..collective import is_recording
from ..data import batches_of_all
from ..foundation import TfdpError, call_site
from ..framework import as_written, in_python
from .nets import noted

_ROWS = "_tfdp_rows"  # of a graph: how many its calls were given since its last exchange of gradients


class _Step:
    """The first exchange of gradients: whether it is over."""

    is_over = False


def note(name: str, rows: Any) -> None:
    """How many rows a call is given: a number, or a tensor of shape `[]`."""
    if batches_of_all() and not _Step.is_over and is_recording():
        noted(_ROWS).append((name, rows))


@as_written
def look() -> None:
    """At an exchange of gradients: has one call of the first step been given a batch of all workers, or several?

    Raises:
        TfdpError: none has.
    """
    calls = list(noted(_ROWS))
    noted(_ROWS).clear()
    if _Step.is_over or not calls:
        return
    names, site = [name for name, _ in calls], call_site()
    numbers = [tf.cast(rows, tf.int64) for _, rows in calls]
    in_python(lambda *found: _looked(names, [int(each) for each in found], site), numbers, tf.bool, [])


def _looked(names: Sequence[str], rows: Sequence[int], site: str) -> bool:
    if not _Step.is_over and not any(each and each % batch == 0 for each in rows for batch in batches_of_all()):
        _refuse(names[-1], rows[-1], site)
    _Step.is_over = True
    return True


def _refuse(name: str, rows: int, site: str) -> NoReturn:
    batches = " or ".join(map(str, sorted(batches_of_all())))
    raise TfdpError(
        f"{name} is given {rows} row{'' if rows == 1 else 's'} in the first step, whose gradients are taken at {site}, "
        f"and a batch of all workers has {batches} (dp.global_batch_size): the batch is cut after it has been made, or "
        "there are fewer examples than one such batch has. A step would be as large as that of one worker, at the "
        "learning rate of all. Let what cuts it go by dp.global_batch_size(n), too, or migrate the script with its own "
        "batch (--batch global)"
    )
