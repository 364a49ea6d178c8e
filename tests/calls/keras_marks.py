"""What Keras' source attaches to objects that may be tensors, or reads from them, besides numbers. Imports no Keras."""

import ast

# Other backends, what saves and converts models, what is only tested, and Keras 2's engine of TensorFlow 1.
SKIPPED = ("backend/jax", "backend/torch", "backend/numpy", "backend/openvino", "saving", "export", "testing")
SKIPPED += (
    "testing_infra",
    "tests",
    "benchmarks",
    "applications",
    "premade_models",
    "integration_test",
    "legacy_tf_layers",
)
_ACCESS = ("getattr", "hasattr", "setattr", "delattr", "get_tensor_attr", "set_tensor_attr")
_OF_OPS = "op."


def marks(root):
    """Names of private attributes, and `op.…` for what is read of a tensor's operation: by name, the files."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if any(place.startswith(f"{each}/") or f"/{each}/" in place for each in SKIPPED) or _apart(path.stem):
            continue
        for name in _marks(ast.parse(path.read_text())):
            found.setdefault(name, set()).add(place)
    return found


def _apart(stem):
    return stem.endswith(("_test", "_v1")) or stem.startswith("test_")


def _marks(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="op"), attr=name):  # tensor.op.type
                yield _OF_OPS + name
            case ast.Attribute(attr=name) if name.startswith("_keras_"):
                yield name
            case ast.Attribute(value=ast.Name(id=of), attr=name, ctx=ast.Store()) if of not in ("self", "cls"):
                if _private(name):
                    yield name
            case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=of), ast.Constant(value=str(name)), *_]):
                if function in _ACCESS and of not in ("self", "cls") and _private(name):
                    yield name
            case ast.Call(func=ast.Name(id="_get_logits"), args=[_, _, ast.Constant(value=str(kind)), *_]):
                yield f"{_OF_OPS}type {kind}"
            case ast.Constant(value=str(name)) if name.startswith("_keras_") and name.isidentifier():
                yield name


def _private(name):
    return name.startswith("_") and not name.startswith("__")
