"""What operations do to the rows of a batch, by the names that NumPy, TensorFlow and Keras' ops share.

Names stand without their module, and without the `reduce_` that TensorFlow puts before some of them.
"""

from __future__ import annotations

import re

OPS = re.compile(r"(tensorflow|numpy|keras\.(ops|backend|activations|random|utils|metrics|losses)|math)\.")
"""Modules in which these names mean these operations."""

REDUCES = frozenset(
    {
        *("mean", "sum", "max", "min", "prod", "std", "var", "variance", "amax", "amin", "median", "average", "any"),
        *("all", "argmax", "argmin", "logsumexp", "norm", "euclidean_norm", "count_nonzero", "percentile", "quantile"),
        *("ptp", "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "moments", "trace", "l2_loss", "global_norm"),
    }
)
"""Put the elements along their axes together; all elements where they name none."""

ALONG_LAST = frozenset({"softmax", "log_softmax", "sort", "argsort", "top_k", "in_top_k", "hardmax", "sparsemax"})
"""Keep the shape, each element made of all those along one axis: the last where they name none."""

ALONG_FIRST = frozenset({"cumsum", "cumprod", "cumulative_logsumexp"})
"""The same, along the first axis where they name none."""

ALONG_ALL = frozenset({"l2_normalize", "normalize", "clip_by_norm"})
"""The same, along all axes where they name none."""

ALONG_LAST_TWO = frozenset(
    {
        *("svd", "qr", "cholesky", "inv", "inverse", "pinv", "det", "slogdet", "logdet", "eigh", "eig", "eigvalsh"),
        *("lu", "expm", "sqrtm", "matrix_rank", "solve", "lstsq", "solve_triangular", "triangular_solve"),
    }
)
"""The same, of matrices: along the last two axes."""

REORDERS = frozenset({"reverse", "flip", "roll", "flipud"})
"""Put elements in another order along their axes."""

CHOOSES_ROWS = frozenset({"gather", "take", "boolean_mask", "compress", "take_along_axis"})
CHOOSES_PARTS = CHOOSES_ROWS | {"slice", "strided_slice", "gather_nd", "dynamic_slice", "roll"}
"""Take elements along an axis by their places."""

PERMUTES = frozenset({"permutation", "permuted"})
"""Methods of generators that draw an order."""

SHUFFLES_ROWS = frozenset({"tensorflow.random.shuffle", "numpy.random.permutation", "keras.random.shuffle"})
"""Put rows in an order that is drawn."""

BY_ELEMENTS = frozenset(
    {
        *(
            "abs",
            "absolute",
            "square",
            "sqrt",
            "rsqrt",
            "exp",
            "expm1",
            "log",
            "log1p",
            "log2",
            "log10",
            "pow",
            "power",
        ),
        *("sin", "cos", "tan", "arctan", "atan", "atan2", "sinh", "cosh", "tanh", "sigmoid", "softplus", "softsign"),
        *("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "swish", "mish", "hard_sigmoid", "linear"),
        *("hard_tanh", "celu", "glu", "exponential", "sign", "floor", "ceil", "round", "rint", "maximum", "minimum"),
        *("clip", "clip_by_value", "where", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
        *("logical_and", "logical_or", "logical_not", "isnan", "is_nan", "isinf", "is_inf", "isfinite", "is_finite"),
        *("add", "subtract", "multiply", "divide", "true_divide", "truediv", "divide_no_nan", "multiply_no_nan", "mod"),
        *("floormod", "floordiv", "floor_divide", "negative", "reciprocal", "squared_difference", "erf", "lgamma"),
        *(
            "digamma",
            "xlogy",
            "log_sigmoid",
            "dropout",
            "cast",
            "saturate_cast",
            "identity",
            "stop_gradient",
            "constant",
        ),
        *(
            "convert_to_tensor",
            "convert_to_numpy",
            "ensure_shape",
            "zeros_like",
            "ones_like",
            "full_like",
            "nan_to_num",
        ),
        *("array", "asarray", "ascontiguousarray", "float32", "float64", "int32", "int64", "copy", "bias_add", "add_n"),
        *(
            "batch_normalization",
            "fake_quant_with_min_max_args",
            "angle",
            "real",
            "imag",
            "complex",
            "bitcast",
            "invert",
        ),
        *("check_numerics", "grad_pass_through", "sigmoid_cross_entropy_with_logits", "heaviside", "deg2rad", "hypot"),
        *("quantize_and_dequantize_v2", "dequantize", "bool_", "nextafter", "sinc"),
    }
)
"""Each element from those at its place."""

BY_EXAMPLES = frozenset(
    {
        *("one_hot", "conv1d", "conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d", "separable_conv2d", "pool"),
        *("max_pool", "max_pool1d", "max_pool2d", "avg_pool", "avg_pool1d", "avg_pool2d", "conv", "depthwise_conv"),
        *("space_to_depth", "depth_to_space", "local_response_normalization", "lrn", "extract_patches", "dilation2d"),
        *("to_categorical", "sequence_mask", "fft", "ifft", "rfft", "irfft", "fft2d", "fft3d", "stft", "band_part"),
        *("max_pool3d", "average_pool", "pad_sequences", "ctc_loss", "multi_hot", "convolution"),
    }
)
"""Each example from itself, with weights and settings: the first axis is the batch's before and after."""

OF_IMAGES = re.compile(r"tensorflow\.(image|signal|strings|io\.decode\w+)\.|keras\.ops\.image\.")
"""Functions that change images, signals and texts one by one."""

LOOKS_UP = frozenset({"embedding_lookup"})
"""Take rows of a table, their first argument, by the second."""

NEW_TENSORS = frozenset({"zeros", "ones", "fill", "full", "normal", "uniform", "truncated_normal", "empty", "gamma"})
"""New tensors of a shape."""

SAME_ROWS = frozenset(
    {"astype", "copy", "numpy", "tolist", "clip", "round", "abs", "conj", "fillna", "to_numpy", "cpu"}
)
"""Methods by which each element is made of the one at its place."""

GIVES_SEVERAL = frozenset({"moments", "normalize", "top_k", "unique"})
"""Give several values."""

OF_GROUPS = re.compile(r"(unsorted_)?segment_\w+$|bincount$|histogram_fixed_width")
"""Put groups along the first axis together."""

OVER_ROWS = {"tensorflow.map_fn", "tensorflow.vectorized_map", "keras.ops.vectorized_map"}
"""Call a function with each row of what they are given."""

AXES_BESIDE_AXIS = ("axis", "axes", "attention_axes")
"""Keywords under which layers and functions are given axes."""

AXIS_PLACES = {
    **{"norm": 2, "roll": 2, "clip_by_norm": 2, "percentile": 2, "quantile": 2, "gather": 2, "take": 2},
    **{"split": 2, "boolean_mask": 2, "argsort": 1, "tensordot": 2, "repeat": 2, "top_k": None, "in_top_k": None},
}
"""Where functions take their axis, if not second."""

KEEPS_AXES = frozenset({"keepdims", "keep_dims"})
"""Keywords by which what is put together keeps its axes, of length one."""

LAYERS_KEEP_AXES = re.compile(
    r"Dense|EinsumDense|(Depthwise|Separable)?Conv\dD(Transpose)?|(Max|Average)Pool(ing)?\dD|\w*Dropout\w*|Activation"
    r"|\w*ReLU|ELU|Softmax|PReLU|\w*Normalization|Gaussian\w+|Identity|Masking|ActivityRegularization|Rescaling|Resizing"
    r"|UpSampling\dD|ZeroPadding\dD|Cropping\dD|Random\w+|CenterCrop|Add|Subtract|Multiply|Average|Maximum|Minimum"
    r"|Concatenate|Permute|Bidirectional|MultiHeadAttention|Attention|AdditiveAttention|Lambda"
)
"""Keras' layers that give as many axes as they are given."""

LAYERS_OF_ANY_AXIS = re.compile(
    r"Dense|Dropout|Activation|\w*ReLU|ELU|LayerNormalization|Gaussian\w+|Identity|Add|Subtract|Multiply|Average|Rescaling"
)
"""Those that treat all axes before the last alike."""

LAYERS_ALONG_LAST = frozenset({"Dense", "LayerNormalization"})
"""Those of them that put together what stands along the last."""

AXES_AFTER_LAYER = {
    **dict.fromkeys(("Flatten", "GlobalAveragePooling1D", "GlobalMaxPooling1D", "GlobalAveragePooling2D"), 2),
    **dict.fromkeys(("GlobalMaxPooling2D", "GlobalAvgPool2D", "GlobalMaxPool2D", "GlobalAvgPool1D"), 2),
    **{"RepeatVector": 3},
}
"""As how many axes some of Keras' layers give."""

LAYER_MODULES = ("keras.layers.", "keras_cv.layers.")
"""Where stock layers are found."""

LAYERS_ALONG_AXES = re.compile(
    r"\w*Attention|(Conv)?LSTM\w*|GRU|SimpleRNN|RNN|Bidirectional|\w*Conv\dD\w*|\w*Pool(ing)?\dD|Flatten"
)
"""Those that put together what stands along the axes behind the first."""

MIXING_LAYERS = re.compile(
    r"(keras|keras_cv)\.(layers\.|layers\.preprocessing\.)?(MixUp|CutMix|RandomMosaic|Mosaic|FourierMix)$"
)
"""Layers that mix the examples of a batch."""

PARTIAL = "functools.partial"
"""A function with some of its arguments given."""

MERGES = frozenset({"add", "subtract", "multiply", "average", "maximum", "minimum", "concatenate", "dot"})
"""Keras' layers in small letters, called as functions."""

AXIS_COMES_FIRST = frozenset({"Softmax", "LayerNormalization", "UnitNormalization", "BatchNormalization"})
"""Keras' layers that take their axis first."""

DATA_LAYERS = frozenset({"Normalization", "StringLookup", "IntegerLookup", "TextVectorization", "Discretization"})
"""Layers whose axes are those of the data they are adapted to."""

RUNS_PYTHON = frozenset({"tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.compat.v1.py_func"})
"""Functions that run Python inside a graph."""

LAMBDA = "keras.layers.Lambda"
"""The layer that calls a function with what it is given, be that one tensor or several."""

GIVES_ROWS_TO = frozenset({LAMBDA, "keras.layers.Activation"})
"""Layers that call their first argument with the batch."""

ARRAY_LIBRARIES = frozenset({"scipy", "sklearn", "skimage", "pandas", "cv2", "einops", "jax", "cupy", "xarray"})
"""Libraries whose functions compute values from their arguments alone, of all rows that they are given."""
