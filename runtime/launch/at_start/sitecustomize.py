"""What Python runs as it starts, in a rank and in every Python that a rank starts: it sees to the hooks beside it.

`tfdp run` puts this folder in front of PYTHONPATH. The script must not notice: the folder leaves `sys.path`, and the
`sitecustomize` that Python would have found runs in this one's place. The Python need not be the one that has tfdp.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HOOKS = {"exit_hook": "TFDP_UNJOINED", "training_hook": "TFDP_UNJOINED", "draws_hook": "TFDP_DRAWS"}
_VARIABLES = frozenset(_HOOKS.values())
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _install_hooks() -> None:
    if sys.version_info < (3, 10) or os.environ.keys().isdisjoint(_VARIABLES):
        return
    for file, variable in _HOOKS.items():
        name = f"_tfdp_{file}"
        spec = importlib.util.spec_from_file_location(name, os.path.join(_FOLDER, f"{file}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        if variable in os.environ:
            module.install(os.environ[variable])


def _hand_over() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _install_hooks()
finally:
    _hand_over()
