"""What a loss is made of: functions, methods and arguments, and what they do to the examples of a batch."""

from __future__ import annotations

EXCHANGES = frozenset(f"tfdp.runtime.{name}" for name in ("allreduce", "global_mean", "global_sum"))
"""Take a number over all workers."""

OVER_AXES = frozenset({"max", "min", "amax", "amin", "mean", "median", "std", "var"})
"""NumPy's functions, and methods of arrays, that put the elements along an axis together."""

MOVES = frozenset({"reshape", "transpose", "flatten", "ravel", "swapaxes"})
"""Methods of arrays that put elements in other places."""

PUTS_TOGETHER = OVER_AXES | {"sum", "ptp", "prod", "any", "all", "argmax", "argmin", "cumsum", "dot", "sort", "take"}
"""Methods of arrays that make values out of several elements, or choose among them."""

GIVES_LOSS = frozenset({"compiled_loss", "compute_loss", "loss", "evaluate", "train_on_batch", "result"})
"""Methods that give a loss or a metric."""

NOT_BATCHES = frozenset({"shape", "dtype", "size", "ndim", "loss", "losses", "T", "values", "flat_values"})
"""Attributes of a batch that are no batches."""

NOT_WEIGHTS = frozenset({"output", "outputs", "input", "inputs", "layers", "losses"})
"""Attributes of a model that are no weights."""

LOSS_NAMES = frozenset(
    {
        *("mse", "mae", "mape", "msle", "bce", "BCE", "ctc", "CTC", "kl_divergence", "kullback_leibler_divergence"),
        *("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "log_cosh"),
        *("mean_squared_logarithmic_error", "CategoricalFocalCrossentropy", "cosine_proximity"),
    }
)
"""The names by which Keras knows losses that couple no examples, beside those of its classes and functions."""

MEAN_REDUCTIONS = frozenset({"sum_over_batch_size", "auto", "mean"})
"""What a loss object is told by which it takes the mean over the batch."""

WEIGHT_POSITIONS = {"sample_weight": 2, "class_weight": 3}
"""Where `train_on_batch` takes weights."""

KERAS_LOSS_WEIGHTS = {"compute_loss": 3, "compiled_loss": 2}
"""Where Keras' own loss takes weights of examples."""

RECURRENT = frozenset(f"keras.layers.{name}" for name in ("LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D"))
"""Layers that use a mask up, unless they give sequences."""

POOLS = frozenset(
    f"keras.layers.{name}"
    for name in ("GlobalAveragePooling1D", "GlobalMaxPooling1D", "GlobalAvgPool1D", "GlobalMaxPool1D", "Flatten")
)
"""Layers that use a mask up."""

NAMES_OF_OPS = {
    **{name: f"reduce_{name}" for name in ("mean", "sum", "max", "min", "prod", "logsumexp")},
    **{"clip": "clip_by_value", "power": "pow", "absolute": "abs", "concatenate": "concat"},
}
"""TensorFlow's names of Keras' ops, where they are others."""

OPERANDS = frozenset(
    {"input_tensor", "input", "inputs", "x", "a", "tensor", "t", "logits", "features", "value", "values"}
)
"""Keywords under which functions of tensors take the tensor."""

SETTINGS = frozenset(
    {"name", "dtype", "seed", "from_logits", "label_smoothing", "rate", "padding", "strides", "data_format"}
)
"""Keywords under which they take no tensor."""

LOSS_OPERANDS = frozenset({"y_true", "y_pred", "sample_weight"})
"""Keywords under which loss objects take tensors."""

TAKES_SHAPE = frozenset(
    {"tensorflow.reshape", "keras.ops.reshape", "tensorflow.broadcast_to", "tensorflow.tile", "keras.ops.tile"}
)
"""Take a shape as their second argument."""

SHAPE_ARGUMENTS = frozenset({"shape", "dims", "batch_shape", "batch_input_shape", "multiples", "repeats", "size"})
"""Keywords under which functions take a shape."""

SIZE_ARGUMENTS = {
    ("tensorflow.nn.compute_average_loss", "global_batch_size"),
    *((f"keras.{name}", "batch_size") for name in ("Input", "layers.Input", "layers.InputLayer")),
}
"""Functions, and keywords under which they take the size of the batch."""

CHANGES_ARRAY = MOVES | {"astype", "copy", "numpy", "squeeze", "repeat", "append"}
"""Methods that give the examples of their object in another form."""

ARRANGES = TAKES_SHAPE | {"numpy.reshape", "numpy.broadcast_to", "numpy.tile", "numpy.repeat", "tensorflow.repeat"}
"""Give the elements of their first argument in another shape."""

ARRANGING_METHODS = MOVES | {"repeat", "resize", "set_shape", "broadcast_to"}
"""Methods that give the elements of their object in another shape."""
