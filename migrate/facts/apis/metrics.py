"""Keras' metric classes, by what their state is."""

from __future__ import annotations

METRIC_SUMS = frozenset(
    """
    Mean MeanTensor Accuracy BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy TopKCategoricalAccuracy
    SparseTopKCategoricalAccuracy AUC Precision Recall PrecisionAtRecall RecallAtPrecision SensitivityAtSpecificity
    SpecificityAtSensitivity BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy KLDivergence
    Poisson MeanSquaredError RootMeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError
    MeanSquaredLogarithmicError CosineSimilarity LogCoshError Hinge SquaredHinge CategoricalHinge F1Score FBetaScore
    IoU BinaryIoU MeanIoU OneHotIoU OneHotMeanIoU MeanRelativeError
    Sum TruePositives TrueNegatives FalsePositives FalseNegatives R2Score
    """.split()  # noqa: SIM905
)
"""A sum over examples, and so is no other's: adding up several ranks' is exact."""
