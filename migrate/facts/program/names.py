"""One spelling for every import form of TensorFlow and Keras."""

from __future__ import annotations

import re

import libcst as cst

from .flow import reaching
from .index import Index

_LOSSES = "keras.losses."
_FOLDS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^tensorflow\.compat\.v2\.", "tensorflow."),
        (r"^tensorflow\._api\.v2\.", "tensorflow."),
        (r"^(?:tensorflow\.keras|tensorflow\.python\.keras|tf_keras|keras\.api)(\.|$)", r"keras\1"),
        (r"^tensorflow\.(optimizers|losses|metrics|initializers)\.", r"keras.\1."),
        (r"^keras\.optimizers\.(?:legacy|experimental)\.", "keras.optimizers."),
        (r"^keras\.optimizers\.(adam|sgd|rmsprop)\.", "keras.optimizers."),
        # The loss functions are metric functions, too.
        (r"^keras\.metrics\.(?=(\w+_crossentropy|(categorical_|squared_)?hinge|huber|log_?cosh|poisson)$)", _LOSSES),
        (r"^keras\.metrics\.(?=(KLD|k\w+|MSE|MAE|MAPE|MSLE|mse|mae|mape|msle|mean_\w+_error)$)", _LOSSES),
        (r"^keras\.losses\.(?:mse|mean_squared_error)$", "keras.losses.MSE"),
        (r"^keras\.losses\.(?:mae|mean_absolute_error)$", "keras.losses.MAE"),
        (r"^keras\.losses\.(?:mape|mean_absolute_percentage_error)$", "keras.losses.MAPE"),
        (r"^keras\.losses\.(?:msle|mean_squared_logarithmic_error)$", "keras.losses.MSLE"),
        (r"^keras\.losses\.(?:kld|kl_divergence|kullback_leibler_divergence)$", "keras.losses.KLD"),
        (r"^keras\.losses\.log_cosh$", "keras.losses.logcosh"),
        (r"^tensorflow\.math\.(reduce_mean|reduce_sum|negative)$", r"tensorflow.\1"),
        (r"^keras\.ops\.mean$", "tensorflow.reduce_mean"),
        (r"^keras\.ops\.sum$", "tensorflow.reduce_sum"),
        (r"^tensorflow\.random\.experimental\.set_seed$", "tensorflow.random.set_seed"),
        (r"^tensorflow\.set_random_seed$", "tensorflow.random.set_seed"),
        (r"^keras\.models\.(Sequential|Model)$", r"keras.\1"),
        (r"^keras\.engine\.(?:training\.)?Model$", "keras.Model"),
        (r"^pylab\.", "matplotlib.pyplot."),
    )
)


def fold(dotted: str) -> str:
    """The canonical spelling of a dotted name, as `migrate.catalogue` writes it."""
    for pattern, replacement in _FOLDS:
        dotted = pattern.sub(replacement, dotted)
    return dotted


class Names:
    """Canonical dotted names of expressions, through imports and module aliases (`layers = tf.keras.layers`)."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: dict[cst.CSTNode, str | None] = {}

    def api(self, node: cst.CSTNode) -> str | None:
        """The canonical name of an expression, or None where it is no imported or built-in name, or not certainly
        one."""
        if node not in self._known:
            self._known[node] = None  # a name defined by itself
            self._known[node] = self._resolve(node)
        return self._known[node]

    def _resolve(self, node: cst.CSTNode) -> str | None:
        if isinstance(node, cst.Attribute):
            base = self.api(node.value)
            return fold(f"{base}.{node.attr.value}") if base is not None else None
        if not isinstance(node, cst.Name):
            return None
        definitions = reaching(self._index, node)
        if not definitions:
            return f"builtins.{node.value}"
        found: set[str | None] = set()
        for definition in definitions:
            if definition.kind == "import":
                found.add(fold(definition.api))
            elif definition.kind == "assign" and isinstance(definition.value, cst.Name | cst.Attribute):
                found.add(self.api(definition.value) if not definition.path else None)
            else:
                found.add(None)
        return found.pop() if len(found) == 1 else None
