"""Which of Keras' own layers keep rows apart, or mix them, whatever the numbers and weights are: a look shows it.

All others are seen operation by operation, as code of the script's own is: a layer may go by the largest number of the
batch, or sum over its rows where another layer lets something through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..keras import is_keras

_BY_ROWS = frozenset(
    """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention Average
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Bidirectional CategoryEncoding CenterCrop
    Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM1DCell
    ConvLSTM2D ConvLSTM2DCell ConvLSTM3D ConvLSTM3DCell ConvLSTMCell Cropping1D Cropping2D Cropping3D Dense
    DepthwiseConv1D DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Flatten GRU GRUCell
    GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
    GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention
    GroupedQueryAttention Hashing Identity InputLayer IntegerLookup LSTM LSTMCell Lambda LayerNormalization LeakyReLU
    LocallyConnected1D LocallyConnected2D Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum
    MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN RandomBrightness RandomContrast
    RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth RandomZoom ReLU RepeatVector
    Rescaling Reshape Resizing SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell Softmax SpatialDropout1D
    SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells StringLookup Subtract SyncBatchNormalization
    TextVectorization ThresholdedReLU TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D
    ZeroPadding1D ZeroPadding2D ZeroPadding3D
    """.split()  # noqa: SIM905 - a list of words
)
_WITHOUT_VARIABLES = frozenset(
    """
    Activation Add Average AveragePooling1D AveragePooling2D AveragePooling3D Concatenate Cropping1D Cropping2D
    Cropping3D Dot ELU Flatten GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D
    GlobalMaxPooling2D GlobalMaxPooling3D Identity LeakyReLU MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum
    Multiply Permute ReLU RepeatVector Rescaling Reshape Softmax Subtract ThresholdedReLU UpSampling1D UpSampling2D
    UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
    """.split()  # noqa: SIM905 - a list of words
)
# Keras 2 puts operations between layers into layers of these classes, which are known by their symbols.
OPERATIONS = frozenset({"ClassMethod", "InstanceMethod", "InstanceProperty", "SlicingOpLambda", "TFOpLambda"})
# Take one image, too, whose first axis is its height.
_OF_IMAGES = frozenset(
    """
    CenterCrop RandomBrightness RandomContrast RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation
    RandomWidth RandomZoom Resizing
    """.split()  # noqa: SIM905 - a list of words
)
_IMAGES = 4  # axes
_AXES = ("axis", "axes", "_attention_axes", "attention_axes")


def is_known(layer: Any) -> bool:
    """Whether a look at a layer tells all, by what it is: a model is, its layers are known by themselves."""
    name = _stock(layer)
    if hasattr(layer, "fit") or name in OPERATIONS:
        return True
    return name in _BY_ROWS and all(map(_is_within_rows, _axes(layer)))


def has_no_variables(layer: Any) -> bool:
    """Whether it is one that makes none: code may make such a layer in each of its calls, and one is as good as another
    of the same settings."""
    return is_keras(type(layer)) and type(layer).__name__ in _WITHOUT_VARIABLES


def works_along_rows(layer: Any, ranks: Sequence[int]) -> bool:
    """Whether axis 0 of the tensors that it is given, of so many axes, is one by which it works: it does by the last
    one, and they have no other; or they are one image."""
    if _stock(layer) in _OF_IMAGES and ranks and max(ranks) < _IMAGES:
        return True
    lasts = (-1 in axis if isinstance(axis, list | tuple) else axis == -1 for axis in _axes(layer))
    return 1 in ranks and any(lasts)


def _stock(layer: Any) -> str:
    """The name of the class of Keras' own that it is of."""
    return next(base for base in type(layer).__mro__ if is_keras(base)).__name__


def _axes(layer: Any) -> list[Any]:
    return [getattr(layer, name, None) for name in _AXES]


def _is_within_rows(axis: Any) -> bool:
    """Whether axes are certainly not that of the batch. One from the end may be, but for the last."""
    if isinstance(axis, list | tuple):
        return all(map(_is_within_rows, axis))
    return axis is None or (isinstance(axis, int) and (axis > 0 or axis == -1))
