"""The closed vocabulary: every function, method, attribute and setting of a script whose input is sharded.

What is not listed is not accepted. A name stands here because a step is faster where its input is sharded, never so
that one script more is accepted: the other road takes every script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .kinds import BATCHED, DATA, DATASETS, NETS, OF_BATCH, ONE_BY_ONE, PARTS, SHOWN, STILL, Kind

_SYMBOLIC = frozenset({Kind.SYMBOLIC})
_ANY = frozenset(Kind) - {Kind.MIXED}
_LAYER_ARGUMENTS = STILL | NETS | {Kind.ACTIVATION}
_COMPILED = STILL | {Kind.OPTIMIZER, Kind.LOSS_OBJECT, Kind.LOSS_FUNCTION, Kind.METRIC}


@dataclass(frozen=True)
class Word:
    """What a function or method takes, and gives; where that is WHOLE, of a worker's own values their OWN.

    keywords: the arguments that may be named; positions: how many may stand without a name; activates: whether a layer
    may be given it as its activation.
    """

    takes: frozenset[Kind]
    gives: Kind
    keywords: frozenset[str] = frozenset()
    positions: int = 9
    activates: bool = False


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _either(names: str) -> str:
    return f"({'|'.join(names.split())})"


# --- names and settings -----------------------------------------------------------------------------------------------

_BUILTINS = "abs bool float int len max min range reversed round slice sorted str sum tuple"
_CLOCKS = r"(time\.(time|perf_counter|monotonic|process_time|strftime)|datetime\.datetime\.(now|today))"
_PATHS = r"(os\.path\.(join|dirname|abspath|basename|realpath|expanduser)|os\.(environ\.get|getenv)|pathlib\.Path)"
# By how many arguments may stand without a name: the next one would be what the result is written to.
_NUMPY = {
    1: (
        "isnan isinf isfinite square sqrt exp expm1 log log10 log1p log2 abs absolute fabs sign rint floor ceil sin "
        "cos tan arctan sinh cosh tanh deg2rad logical_not"
    ),
    2: (
        "concatenate stack argmax argmin median min max amin amax nanmin nanmax ptp any all minimum maximum add "
        "subtract multiply divide mod power round around arctan2 hypot logical_and logical_or logical_xor equal "
        "not_equal greater greater_equal less less_equal dot matmul outer"
    ),
    3: "clip sum prod cumsum cumprod mean average std var percentile quantile nanmean nanstd trace take",
    9: (
        "array asarray ascontiguousarray zeros zeros_like ones ones_like full full_like arange linspace logspace eye "
        "identity meshgrid indices copy reshape ravel transpose swapaxes moveaxis expand_dims squeeze atleast_1d "
        "atleast_2d broadcast_to vstack hstack dstack column_stack append split array_split tile repeat pad flip "
        "fliplr flipud roll rot90 where sort argsort unique nonzero flatnonzero searchsorted digitize bincount "
        "histogram isin count_nonzero array_equal allclose isclose inner tensordot einsum cross diag interp diff "
        "gradient size shape ndim load loadtxt genfromtxt setdiff1d intersect1d union1d delete insert "
        "take_along_axis linalg.norm float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ "
        "str_"
    ),
}
_NUMPY_SETTINGS = (
    "axis dtype keepdims shape size low high seed endpoint num loc scale copy ord allow_pickle replace p order mode "
    "constant_values pad_width ddof indexing retstep decimals initial"
)
_GPUS = r"tensorflow\.config\.(experimental\.)?(list_physical_devices|set_memory_growth|set_visible_devices)"
_ONE_HOT = r"keras\.(utils\.(to_categorical|normalize|pad_sequences)|preprocessing\.sequence\.pad_sequences)"

_LAYERS = (
    "Dense Conv1D Conv2D Conv3D Conv2DTranspose SeparableConv2D DepthwiseConv2D MaxPool2D MaxPooling1D MaxPooling2D "
    "MaxPooling3D AveragePooling1D AveragePooling2D GlobalMaxPooling1D GlobalMaxPooling2D GlobalAveragePooling1D "
    "GlobalAveragePooling2D Flatten Reshape Permute RepeatVector Embedding "
    "LSTM GRU SimpleRNN LSTMCell GRUCell Activation ReLU LeakyReLU PReLU ELU ZeroPadding1D ZeroPadding2D UpSampling1D "
    "UpSampling2D Cropping2D Rescaling Bidirectional TimeDistributed InputLayer"
)
_DROPOUTS = "Dropout SpatialDropout1D SpatialDropout2D"
_OF_AXES = "LayerNormalization Softmax Concatenate"
_MERGES = "Add Subtract Multiply Average Maximum Minimum"
_LAYER_SETTINGS = (
    "units filters kernel_size strides padding activation input_shape input_dim name dtype use_bias dilation_rate "
    "kernel_initializer bias_initializer kernel_regularizer bias_regularizer kernel_constraint pool_size size rate "
    "epsilon center scale output_dim embeddings_initializer embeddings_regularizer input_length groups seed "
    "return_sequences recurrent_activation recurrent_initializer recurrent_dropout dropout depth_multiplier offset "
    "data_format target_shape dims n negative_slope alpha axis layer merge_mode trainable unroll "
    "depthwise_initializer pointwise_initializer gamma_initializer beta_initializer interpolation"
)
_WEIGHTS = "l1 l2 l mean stddev seed value minval maxval gain scale mode distribution"
_ACTIVATIONS = "relu relu6 leaky_relu elu selu gelu silu swish sigmoid tanh softplus softsign softmax"

_LOSSES = (
    "BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy MeanSquaredError MeanAbsoluteError "
    "MeanSquaredLogarithmicError MeanAbsolutePercentageError Huber LogCosh CategoricalHinge Poisson "
    "KLDivergence"
)
_METRICS = (
    "Mean Accuracy BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy SparseTopKCategoricalAccuracy "
    "TopKCategoricalAccuracy MeanSquaredError MeanAbsoluteError BinaryCrossentropy CategoricalCrossentropy "
    "SparseCategoricalCrossentropy"
)
_OPTIMIZERS = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax Nadam Ftrl"
OPTIMIZERS = frozenset(_OPTIMIZERS.lower().split())
"""By the names that `compile` knows them by, in small letters."""
_OPTIMIZER_SETTINGS = (
    "learning_rate momentum nesterov beta_1 beta_2 epsilon rho amsgrad weight_decay centered initial_accumulator_value"
)
_SCHEDULES = "ExponentialDecay CosineDecay PiecewiseConstantDecay PolynomialDecay InverseTimeDecay"
# No staircase: a step of it is at steps / N, which float32 may round over.
_SCHEDULE_SETTINGS = "initial_learning_rate decay_steps decay_rate alpha boundaries values end_learning_rate power name"
_CALLBACKS = "EarlyStopping ModelCheckpoint ReduceLROnPlateau CSVLogger TensorBoard TerminateOnNaN History"
_CALLBACK_SETTINGS = (
    "monitor patience restore_best_weights min_delta mode verbose filepath save_best_only save_weights_only factor "
    "cooldown filename append separator log_dir baseline start_from_epoch"
)
# No validation_steps: they are of the batch, which is a worker's.
_FIT = (
    "x y batch_size epochs verbose callbacks validation_split validation_data shuffle class_weight sample_weight "
    "steps_per_epoch validation_batch_size validation_freq initial_epoch"
)
_STAGES = "shuffle prefetch cache repeat take skip"
_STAGE_SETTINGS = "buffer_size seed batch_size drop_remainder count num_parallel_calls reshuffle_each_iteration"
_WHOLE_METHODS = {
    1: "mean min max sum std round argmax cumsum dot any all",
    2: "random standard_normal clip",
    9: (
        "astype reshape copy flatten ravel transpose tolist join split lower upper strip replace keys values items "
        "index startswith endswith numpy squeeze resolve normal uniform integers randint rand randn permutation "
        "shuffle choice zfill repeat"
    ),
}
DRAWS = _set("normal uniform integers randint random rand randn permutation shuffle standard_normal choice")
_WHOLE_ATTRIBUTES = "shape ndim size dtype T parent name stem"
_OWN_METHODS = {
    0: "numpy tolist total_seconds",
    1: "mean item strftime",
}  # the third of `mean` is what it is written to
_OPTION = "type default help choices required nargs action dest metavar"


# --- functions --------------------------------------------------------------------------------------------------------


def _word(
    names: str, takes: frozenset[Kind], gives: Kind, keywords: str = "", positions: int = 9
) -> tuple[re.Pattern[str], Word]:
    return re.compile(rf"(?:{names})$"), Word(takes, gives, _set(keywords), positions)


FUNCTIONS: tuple[tuple[re.Pattern[str], Word], ...] = (
    # What is alike on all workers.
    _word(r"numpy\.random\.\w+", STILL, Kind.WHOLE, _NUMPY_SETTINGS),  # what they are given moves a generator on
    *(
        _word(rf"numpy\.{_either(names)}", SHOWN, Kind.WHOLE, _NUMPY_SETTINGS, positions)
        for positions, names in _NUMPY.items()
    ),
    _word(r"math\.\w+", SHOWN, Kind.WHOLE),
    _word(rf"builtins\.{_either(_BUILTINS)}", SHOWN, Kind.WHOLE, "key reverse start default ndigits"),
    _word(r"builtins\.print", _ANY, Kind.NOTHING, "end sep flush"),
    _word(_CLOCKS, STILL, Kind.OWN),
    _word(_PATHS, DATA, Kind.WHOLE),
    _word(r"os\.makedirs", STILL, Kind.NOTHING, "exist_ok mode name"),
    _word(r"argparse\.ArgumentParser", STILL, Kind.PARSER, "description prog epilog"),
    _word(r"random\.seed|tensorflow\.random\.set_seed|keras\.utils\.set_random_seed", STILL, Kind.NOTHING, "seed a"),
    _word(r"keras\.backend\.(set_floatx|clear_session)", STILL, Kind.NOTHING),
    _word(r"keras\.datasets\.\w+\.load_data", STILL, Kind.WHOLE, "path num_words maxlen seed test_split label_mode"),
    _word(_ONE_HOT, STILL, Kind.WHOLE, "num_classes maxlen dtype padding truncating value axis order"),
    _word(r"tensorflow\.(constant|convert_to_tensor|zeros|ones|range|linspace)", DATA, Kind.WHOLE, "dtype shape"),
    _word(_GPUS, STILL, Kind.WHOLE),
    # Data and models.
    _word(r"tensorflow\.data\.Dataset\.from_tensor_slices", STILL, Kind.DATASET, "tensors"),
    _word(r"keras\.(layers\.)?Input", STILL, Kind.SYMBOLIC, "shape name dtype"),
    _word(rf"keras\.layers\.{_either(_LAYERS)}", _LAYER_ARGUMENTS, Kind.LAYER, _LAYER_SETTINGS, positions=4),
    _word(rf"keras\.layers\.{_either(_DROPOUTS)}", STILL, Kind.LAYER, _LAYER_SETTINGS, positions=1),  # not its shape
    _word(rf"keras\.layers\.{_either(_OF_AXES)}", STILL, Kind.LAYER, _LAYER_SETTINGS, positions=0),
    _word(rf"keras\.layers\.{_either(_MERGES)}", STILL, Kind.LAYER, "name", positions=0),
    _word(rf"keras\.layers\.{_either(_MERGES.lower())}", _SYMBOLIC, Kind.SYMBOLIC, "name", positions=1),
    _word(r"keras\.layers\.concatenate", _SYMBOLIC, Kind.SYMBOLIC, "name axis", positions=1),
    _word(r"keras\.Sequential", STILL | NETS | _SYMBOLIC, Kind.MODEL, "layers name"),
    _word(r"keras\.Model", STILL | _SYMBOLIC, Kind.MODEL, "inputs outputs name"),
    _word(r"keras\.(regularizers|initializers)\.\w+", STILL, Kind.WHOLE, _WEIGHTS),
    # Training.
    _word(rf"keras\.losses\.{_either(_LOSSES)}", STILL, Kind.LOSS_OBJECT, "from_logits label_smoothing name delta", 0),
    _word(rf"keras\.metrics\.{_either(_METRICS)}", STILL, Kind.METRIC, "name dtype threshold k from_logits", 1),
    _word(rf"keras\.optimizers\.{_either(_OPTIMIZERS)}", STILL, Kind.OPTIMIZER, _OPTIMIZER_SETTINGS, positions=1),
    _word(rf"keras\.optimizers\.schedules\.{_either(_SCHEDULES)}", STILL, Kind.WHOLE, _SCHEDULE_SETTINGS, 3),
    _word(rf"keras\.callbacks\.{_either(_CALLBACKS)}", STILL, Kind.CALLBACK, _CALLBACK_SETTINGS, 2),
    _word(r"tensorflow\.GradientTape", frozenset(), Kind.TAPE),
    _word(r"tensorflow\.add_n", frozenset({Kind.PENALTIES}), Kind.LOSS, positions=1),
    _word(
        r"tensorflow\.train\.Checkpoint",
        frozenset({Kind.MODEL, Kind.OPTIMIZER}),
        Kind.CHECKPOINT,
        "model optimizer net",
        positions=0,
    ),
    (
        re.compile(rf"(tensorflow\.nn|keras\.activations|keras\.ops)\.{_either(_ACTIVATIONS)}$"),
        Word(_SYMBOLIC, Kind.SYMBOLIC, _set("name"), positions=1, activates=True),
    ),
)
"""Functions and classes by their full names; the first that fits is meant."""


def known(api: str) -> Word | None:
    """What is known of a function or class; None where it is not in the vocabulary."""
    return next((word for names, word in FUNCTIONS if names.match(api)), None)


OPTIMIZER_SETTINGS, CALLBACK_SETTINGS = _set(_OPTIMIZER_SETTINGS), _set(_CALLBACK_SETTINGS)
"""Settings that do not go by the number of the step."""

MEANS = _set(
    "accuracy acc mae mse mean_squared_error mean_absolute_error binary_accuracy categorical_accuracy "
    "sparse_categorical_accuracy binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy"
)
"""Names of metrics that are means over the rows."""

LOSSES = _set(
    "mse MSE mean_squared_error mae MAE mean_absolute_error mape MAPE mean_absolute_percentage_error msle MSLE "
    "mean_squared_logarithmic_error binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy "
    "binary_focal_crossentropy categorical_focal_crossentropy kld KLD kl_divergence huber logcosh log_cosh poisson "
    "cosine_similarity categorical_hinge"
)
"""Loss functions of each row: no overlaps, and not those that move labels to -1 and 1 if all of a batch are 0 or 1."""

IN_PLACE = frozenset({"shuffle"})
"""Change an array that they are given, or are methods of: such as counts steps, under all its names."""

CONSTANTS = re.compile(
    r"((tensorflow|numpy)\.((float|int|uint|bfloat|complex)\d*|bool_?|string|newaxis)|(numpy|math)\.(pi|e|inf|nan)"
    r"|tensorflow\.data\.(experimental\.)?AUTOTUNE|builtins\.(int|float|str|bool|__name__|__file__|__doc__)"
    r"|sys\.argv|(tensorflow|numpy|keras)\.__version__|tensorflow\.version\.VERSION)$"
)
"""Names that are no functions where they stand: types, numbers, texts."""

SAME = re.compile(r"tensorflow\.cast$")
"""Give what they are given, in another type."""

OF_NUMBERS = re.compile(r"tensorflow\.(one_hot|image\.convert_image_dtype)$")
"""Change each number of an element or batch by itself; all other arguments are alike on all."""

OF_IMAGES = re.compile(r"tensorflow\.image\.(resize|rgb_to_grayscale|grayscale_to_rgb)$")
"""Change one element of a dataset, whatever its axes mean; what else they are given is alike on all."""

MODULES = re.compile(
    r"(tensorflow|keras|numpy|math|time|datetime|os|sys|pathlib|argparse|random|typing|__future__|tfdp\.runtime)(\.|$)"
)
"""What may be imported."""


# --- what a migrated script calls: it means what the original says ----------------------------------------------------

RUNTIME = "tfdp.runtime."

AROUND = _set(
    "shard shard_batches local_batches local_rows held_out rank_path root_path local_steps local_schedule "
    "sharded_length global_batch_size local_batch_size scale_lr scale_optimizer shuffle_seed rank_seed "
    "broadcast_object agree average_value DistributedOptimizer DistributedGradientTape fit_callbacks"
)
"""Stand around a value of the original; around nothing, the original has none."""

CALLED_BY = _set("on_root report root_first")
"""Call the function that they are given first with the rest."""

BESIDE = _set("init pin_gpu broadcast_state barrier common_seed seed_by_rank set_random_seed")
"""Statements that the original has not."""


# --- methods and attributes -------------------------------------------------------------------------------------------

METHODS: dict[tuple[Kind, str], Word] = {
    **{
        (Kind.WHOLE, name): Word(STILL if name in DRAWS else DATA, Kind.WHOLE, _set(_NUMPY_SETTINGS), positions)
        for positions, names in _WHOLE_METHODS.items()
        for name in names.split()
    },
    (Kind.WHOLE, "format"): Word(SHOWN, Kind.WHOLE),
    **{
        (Kind.OWN, name): Word(STILL, Kind.OWN, positions=positions)
        for positions, names in _OWN_METHODS.items()
        for name in names.split()
    },
    **{(of, name): Word(STILL, of, _set(_STAGE_SETTINGS)) for of in DATASETS for name in _STAGES.split()},
    **{(of, "batch"): Word(STILL, to, _set(_STAGE_SETTINGS)) for of, to in zip(ONE_BY_ONE, BATCHED, strict=True)},
    (Kind.LOSS, "numpy"): Word(frozenset(), Kind.OWN),
    (Kind.PARSER, "add_argument"): Word(STILL, Kind.NOTHING, _set(_OPTION)),
    (Kind.PARSER, "parse_args"): Word(frozenset(), Kind.SETTINGS),
    (Kind.CHECKPOINT, "save"): Word(DATA, Kind.NOTHING, _set("file_prefix")),
    (Kind.MODEL, "compile"): Word(
        _COMPILED, Kind.NOTHING, _set("optimizer loss metrics loss_weights steps_per_execution"), positions=2
    ),
    (Kind.MODEL, "fit"): Word(STILL | DATASETS | {Kind.CALLBACK}, Kind.OWN, _set(_FIT), positions=2),
    (Kind.MODEL, "evaluate"): Word(
        STILL | DATASETS - PARTS, Kind.OWN, _set("x y batch_size verbose steps sample_weight return_dict"), positions=2
    ),
    (Kind.MODEL, "predict"): Word(STILL | DATASETS - PARTS, Kind.OWN, _set("x batch_size verbose steps"), positions=1),
    (Kind.MODEL, "summary"): Word(STILL, Kind.NOTHING),
    (Kind.MODEL, "build"): Word(STILL, Kind.NOTHING, _set("input_shape")),
    (Kind.MODEL, "add"): Word(NETS | _SYMBOLIC, Kind.NOTHING, positions=1),
    (Kind.MODEL, "get_layer"): Word(STILL, Kind.LAYER, _set("name index")),
    (Kind.MODEL, "save"): Word(DATA, Kind.NOTHING),
    (Kind.MODEL, "save_weights"): Word(DATA, Kind.NOTHING),
    (Kind.MODEL, "count_params"): Word(frozenset(), Kind.WHOLE),
    (Kind.TAPE, "gradient"): Word(frozenset({Kind.LOSS, Kind.VARIABLES}), Kind.GRADIENTS, positions=2),
    (Kind.OPTIMIZER, "apply_gradients"): Word(frozenset({Kind.UPDATES}), Kind.NOTHING, positions=1),
    (Kind.METRIC, "update_state"): Word(OF_BATCH | {Kind.LOSS}, Kind.NOTHING, positions=2),
    (Kind.METRIC, "result"): Word(frozenset(), Kind.OWN),
    (Kind.METRIC, "reset_state"): Word(frozenset(), Kind.NOTHING),
    (Kind.METRIC, "reset_states"): Word(frozenset(), Kind.NOTHING),
}
"""Methods by the kind of their object."""

WRITES = frozenset({(Kind.MODEL, "save"), (Kind.MODEL, "save_weights"), (Kind.CHECKPOINT, "save")})
"""Those that write files, which rank 0 alone is to do."""

_OF_NETS = {
    "trainable_variables": Kind.VARIABLES,
    "trainable_weights": Kind.VARIABLES,
    "losses": Kind.PENALTIES,
    "input": Kind.SYMBOLIC,
    "output": Kind.SYMBOLIC,
    "name": Kind.WHOLE,
    "trainable": Kind.WHOLE,
}
ATTRIBUTES: dict[tuple[Kind, str], Kind] = {
    **{(Kind.WHOLE, name): Kind.WHOLE for name in _WHOLE_ATTRIBUTES.split()},
    (Kind.OWN, "history"): Kind.OWN,
    (Kind.OWN, "epoch"): Kind.OWN,
    **{(net, name): of for net in NETS for name, of in _OF_NETS.items()},
    (Kind.MODEL, "layers"): Kind.LAYER,
}
"""Attributes by the kind of their object; those of the command's arguments are all alike on all workers."""

SETS = frozenset({"trainable"})
"""Attributes of models that may be set, to True or False."""
