"""What functions and methods do with data."""

from __future__ import annotations

import re

SAME_BATCHES = frozenset({"builtins.enumerate", "builtins.iter", "tensorflow_datasets.as_numpy"})
"""Iterate over what they are given without a change."""

SHARDS_DATASET = frozenset({"tfdp.runtime.shard", "tfdp.runtime.shard_batches"})
"""Give each worker its share of a dataset."""

MIXES_DATASETS = re.compile(r"tensorflow\.data\.(Dataset\.zip|(Dataset|experimental)\.(sample|choose)_from_datasets)$")
"""Put datasets together."""

SHUFFLES_FILES = {"tensorflow.data.Dataset.list_files": 1, "tensorflow.data.experimental.make_csv_dataset": None}
"""Draw the order of files unless `shuffle` says otherwise, and where that stands."""

NO_DATASETS = re.compile(r"(builtins|tensorflow|keras|numpy|tfdp|tqdm|os|pathlib|glob|json|pickle)\.")
"""Functions that make no dataset, where the catalogue does not say that they do."""

TAKES_NO_RECORDS = frozenset({"builtins.len", "builtins.print", "builtins.iter", "builtins.type"})
"""Functions that take no records of a dataset by themselves."""


SEED_PLACES = {
    "shuffle": ("seed", 1),
    "list_files": ("seed", 2),
    "sample_from_datasets": ("seed", 2),
    "make_csv_dataset": ("shuffle_seed", None),
}
"""Shuffle, and take their seed by this keyword and at this position."""
