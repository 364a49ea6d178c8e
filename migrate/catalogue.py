"""What TensorFlow's and Keras' names mean to a migration: canonical name -> Kind.

Data only. Names are in the one spelling that `facts.program.fold` gives every import form; a test resolves each of them
against the installed TensorFlow, so that a name that does not exist cannot stay here unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The part that an API plays in a training script."""

    TAPE = "gradient tape"
    OPTIMIZER = "optimizer"
    SCHEDULE = "learning-rate schedule"
    LOSS_CLASS = "loss object, a mean over the batch unless reduction= says otherwise"
    LOSS_FUNCTION = "loss function, one value per example"
    MEAN = "mean of all elements"
    SUM = "sum of all elements"
    PASS = "the same value in another form"
    REGULARIZER = "half the sum of squares of all elements"
    VARIABLE = "variable"
    LITERAL = "value without examples"
    DRAW = "random numbers"
    ELEMENTWISE = "each element from the elements at its place"
    OPERATOR = "an operator, written as a function"
    ROWS = "each example from itself, with the weights given"
    ALONG = "along one axis, the last unless axis= says otherwise"
    STATISTIC = "one value of all elements, or of those along axis="
    LAYOUT = "moves elements to other places"
    MASKING = "hides elements from the loss"
    DATASET = "record stream"
    BATCHED_DATASET = "dataset that is batched by its maker"
    MODEL = "model"
    CHECKPOINT = "checkpoint"
    EVENTS = "writer of summary files"
    SEED = "sets TensorFlow's global seed"
    SEED_ALL = "sets the seeds of Python, NumPy and TensorFlow"
    GENERATOR = "random generator of its own, unseeded where it has no argument"
    COMPILER = "returns the function it is given, compiled"
    LOSS_SCALE = "optimizer around another, which scales the loss"
    PROGRESS = "progress bar around an iterable"


OPTIMIZERS: dict[str, float | None] = {
    # name -> default learning rate; None where it differs between TensorFlow 2.15 and 2.21
    "Adadelta": 0.001,
    "Adafactor": 0.001,
    "Adagrad": 0.001,
    "Adam": 0.001,
    "AdamW": 0.001,
    "Adamax": 0.001,
    "Ftrl": 0.001,
    "Lion": None,
    "Nadam": 0.001,
    "RMSprop": 0.001,
    "SGD": 0.01,
}

# An optimizer by its name or configuration, and one of which the runtime has scaled the rate.
MADE_BY_NAME = frozenset({"keras.optimizers.get", "keras.optimizers.deserialize"})
SCALED_OPTIMIZER = "tfdp.runtime.scale_optimizer"

SCHEDULES: dict[str, tuple[tuple[str, int], ...]] = {
    # name -> its arguments that count steps, with their positions
    "CosineDecay": (("decay_steps", 1), ("warmup_steps", 5)),
    "CosineDecayRestarts": (("first_decay_steps", 1),),
    "ExponentialDecay": (("decay_steps", 1),),
    "InverseTimeDecay": (("decay_steps", 1),),
    "PiecewiseConstantDecay": (("boundaries", 0),),
    "PolynomialDecay": (("decay_steps", 1),),
}

_LOSS_CLASSES = (
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
)
_LOSS_FUNCTIONS = (
    "MAE",
    "MSE",
    "KLD",
    "MAPE",
    "MSLE",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "cosine_similarity",
    "hinge",
    "huber",
    "logcosh",
    "poisson",
    "sparse_categorical_crossentropy",
    "squared_hinge",
)

_BIT_GENERATORS = ("Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence")

# What tensor functions do with the examples of a batch: names below `tensorflow.`.
_TENSORS: dict[Kind, str] = {
    Kind.VARIABLE: "Variable",
    Kind.LITERAL: "zeros ones",
    Kind.DRAW: "random.normal random.uniform random.truncated_normal",
    Kind.PASS: "constant stop_gradient ensure_shape",
    Kind.ELEMENTWISE: "clip_by_value ones_like zeros_like where math.rsqrt math.log math.log1p math.expm1 "
    "math.softplus math.squared_difference math.erf math.lgamma math.digamma math.divide_no_nan math.multiply_no_nan "
    "math.xlogy math.log_sigmoid math.reciprocal_no_nan math.is_nan math.is_inf math.is_finite nn.sigmoid nn.tanh "
    "nn.softplus nn.relu nn.relu6 nn.leaky_relu nn.elu nn.selu nn.gelu nn.silu nn.swish nn.softsign nn.dropout "
    "nn.sigmoid_cross_entropy_with_logits nn.weighted_cross_entropy_with_logits nn.log_poisson_loss",
    Kind.ROWS: "one_hot nn.conv1d nn.conv2d nn.conv3d nn.depthwise_conv2d nn.max_pool nn.max_pool2d nn.avg_pool "
    "nn.avg_pool2d nn.bias_add nn.embedding_lookup",
    Kind.LOSS_FUNCTION: "nn.softmax_cross_entropy_with_logits nn.sparse_softmax_cross_entropy_with_logits",
    Kind.ALONG: "nn.softmax nn.log_softmax nn.l2_normalize math.l2_normalize linalg.l2_normalize",
    Kind.STATISTIC: "math.reduce_std math.reduce_variance math.reduce_euclidean_norm math.count_nonzero norm "
    "linalg.norm",
    Kind.LAYOUT: "broadcast_to reshape squeeze expand_dims transpose matmul linalg.matmul concat stack split tile fill",
}
_TENSORS_AND_MATH: dict[Kind, str] = {  # also below `tensorflow.math.`
    Kind.ELEMENTWISE: "abs square sqrt exp pow sigmoid tanh sin cos sign maximum minimum floor round equal not_equal "
    "greater greater_equal less less_equal logical_and logical_or logical_not",
    Kind.OPERATOR: "add subtract multiply divide truediv",
    Kind.STATISTIC: "reduce_max reduce_min reduce_prod reduce_logsumexp reduce_any reduce_all argmax argmin",
}

KINDS: dict[str, Kind] = {
    "tensorflow.GradientTape": Kind.TAPE,
    "tensorflow.function": Kind.COMPILER,
    "tensorflow.reduce_mean": Kind.MEAN,
    "tensorflow.reduce_sum": Kind.SUM,
    "tensorflow.cast": Kind.PASS,
    "tensorflow.identity": Kind.PASS,
    "tensorflow.convert_to_tensor": Kind.PASS,
    "tensorflow.negative": Kind.PASS,
    "tensorflow.nn.l2_loss": Kind.REGULARIZER,
    "tensorflow.data.Dataset.from_tensor_slices": Kind.DATASET,
    "tensorflow.data.Dataset.from_generator": Kind.DATASET,
    "tensorflow.data.Dataset.list_files": Kind.DATASET,
    "tensorflow.data.Dataset.range": Kind.DATASET,
    "tensorflow.data.Dataset.zip": Kind.DATASET,
    "tensorflow.data.Dataset.sample_from_datasets": Kind.DATASET,
    "tensorflow.data.Dataset.choose_from_datasets": Kind.DATASET,
    "tensorflow.data.experimental.sample_from_datasets": Kind.DATASET,
    "tensorflow.data.experimental.choose_from_datasets": Kind.DATASET,
    "tensorflow.data.experimental.CsvDataset": Kind.DATASET,
    "tensorflow.data.TFRecordDataset": Kind.DATASET,
    "tensorflow.data.TextLineDataset": Kind.DATASET,
    "tensorflow.data.FixedLengthRecordDataset": Kind.DATASET,
    "tensorflow_datasets.load": Kind.DATASET,
    "keras.utils.image_dataset_from_directory": Kind.BATCHED_DATASET,
    "keras.utils.text_dataset_from_directory": Kind.BATCHED_DATASET,
    "keras.utils.audio_dataset_from_directory": Kind.BATCHED_DATASET,
    "keras.utils.timeseries_dataset_from_array": Kind.BATCHED_DATASET,
    "keras.preprocessing.image_dataset_from_directory": Kind.BATCHED_DATASET,
    "keras.Sequential": Kind.MODEL,
    "keras.Model": Kind.MODEL,
    "keras.models.load_model": Kind.MODEL,
    "keras.models.clone_model": Kind.MODEL,
    "tensorflow.Module": Kind.MODEL,
    "tensorflow.train.Checkpoint": Kind.CHECKPOINT,
    "tensorflow.train.CheckpointManager": Kind.CHECKPOINT,
    "tensorflow.summary.create_file_writer": Kind.EVENTS,
    "tensorflow.random.set_seed": Kind.SEED,
    "keras.utils.set_random_seed": Kind.SEED_ALL,
    "numpy.random.default_rng": Kind.GENERATOR,
    "numpy.random.RandomState": Kind.GENERATOR,
    "random.Random": Kind.GENERATOR,
    **{f"numpy.random.{name}": Kind.GENERATOR for name in _BIT_GENERATORS},
    **{f"keras.random.{name}": Kind.DRAW for name in ("normal", "uniform", "truncated_normal")},
    "keras.mixed_precision.LossScaleOptimizer": Kind.LOSS_SCALE,
    "tqdm.tqdm": Kind.PROGRESS,
    "tqdm.auto.tqdm": Kind.PROGRESS,
    "tqdm.notebook.tqdm": Kind.PROGRESS,
    **{f"keras.optimizers.{name}": Kind.OPTIMIZER for name in OPTIMIZERS},
    **dict.fromkeys(MADE_BY_NAME, Kind.OPTIMIZER),
    **{f"keras.optimizers.schedules.{name}": Kind.SCHEDULE for name in SCHEDULES},
    **{f"keras.losses.{name}": Kind.LOSS_CLASS for name in _LOSS_CLASSES},
    **{f"keras.losses.{name}": Kind.LOSS_FUNCTION for name in _LOSS_FUNCTIONS},
    **{f"tensorflow.{name}": kind for kind, names in _TENSORS.items() for name in names.split()},
    **{
        f"tensorflow.{module}{name}": kind
        for kind, names in _TENSORS_AND_MATH.items()
        for name in names.split()
        for module in ("", "math.")
    },
    "keras.layers.Masking": Kind.MASKING,
}

STRATEGIES = "tensorflow.distribute"
STRATEGY_PREFIXES = (
    STRATEGIES,
    "tensorflow.python.distribute",
    "tensorflow.compat.v1.distribute",
    "tensorflow.experimental.dtensor",
    "horovod",
    "smdistributed",
    "byteps",
    "keras.distribution",
)
_ONE_REPLICA = (
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "NcclAllReduce",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver.SimpleClusterResolver",
    "experimental.CollectiveCommunication",
    "experimental.CollectiveHints",
    "experimental.CommunicationImplementation",
    "experimental.CommunicationOptions",
    "experimental.ValueContext",
    "get_replica_context",
    "get_strategy",
)
OTHER_SYSTEMS = (
    "autodist",
    "byteps",
    "kungfu",
    "mpi4py",
    "ray.train",
    "ray.util.sgd",
    "spark_tensorflow_distributor",
    "tensorflowonspark",
)
"""Modules that start or join processes which train together, and nothing else here."""
NAMED_SYSTEMS = ("horovod", "smdistributed")  # whose names the runtime has
TF1_PREFIXES = (
    "tensorflow.compat.v1.Session",
    "tensorflow.compat.v1.InteractiveSession",
    "tensorflow.compat.v1.train",
    "tensorflow.estimator",
    "tensorflow.Session",
    "tensorflow.compat.v1.disable_eager_execution",
    "tensorflow.compat.v1.disable_v2_behavior",
    "tensorflow.gradients",
    "tensorflow.compat.v1.gradients",
)
UPDATES = frozenset({"apply_gradients", "apply"})
SAVES = {
    Kind.CHECKPOINT: frozenset({"save", "write"}),
    Kind.MODEL: frozenset({"save", "save_weights", "export"}),
}
VARIABLE_COLLECTIONS = frozenset({"trainable_variables", "trainable_weights", "variables", "weights"})


@dataclass(frozen=True)
class StageFacts:
    """How one dataset stage behaves towards the sharding of records over ranks (SEMANTICS.md 2)."""

    counts: bool  # its output count depends on content or on a number of records: must come before sharding


STAGES: dict[str, StageFacts] = {
    "map": StageFacts(counts=False),
    "shuffle": StageFacts(counts=False),
    "prefetch": StageFacts(counts=False),
    "with_options": StageFacts(counts=False),
    "cache": StageFacts(counts=False),
    "repeat": StageFacts(counts=False),
    "batch": StageFacts(counts=False),
    "padded_batch": StageFacts(counts=False),
    "take": StageFacts(counts=True),
    "skip": StageFacts(counts=True),
    "filter": StageFacts(counts=True),
    "flat_map": StageFacts(counts=True),
    "interleave": StageFacts(counts=True),
    "unbatch": StageFacts(counts=True),
    "concatenate": StageFacts(counts=True),
    "enumerate": StageFacts(counts=True),
    "shard": StageFacts(counts=True),
    "take_while": StageFacts(counts=True),
    "apply": StageFacts(counts=True),
    "window": StageFacts(counts=True),
    "unique": StageFacts(counts=True),
    "scan": StageFacts(counts=True),
    "ignore_errors": StageFacts(counts=True),
    "rejection_resample": StageFacts(counts=True),
    "ragged_batch": StageFacts(counts=False),
}
BATCHING = frozenset({"batch", "padded_batch", "ragged_batch"})


def is_of_one_replica(api: str) -> bool:
    """Whether a name of `tf.distribute` makes no strategy, nor anything else that trains together: it means there what
    it does with TensorFlow's own strategy of one replica."""
    name = api.removeprefix(f"{STRATEGIES}.")
    return name == "experimental" or any(f"{name}.".startswith(f"{known}.") for known in _ONE_REPLICA)
