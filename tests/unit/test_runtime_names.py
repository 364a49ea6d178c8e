"""`tfdp.runtime` is lazy: its table, what type checkers see, and what the modules define must agree."""

import ast
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import tfdp.runtime

PACKAGE = pathlib.Path(tfdp.runtime.__file__)


def imported_for_type_checkers():
    (block,) = [
        node
        for node in ast.parse(PACKAGE.read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            assert alias.asname == alias.name, "without `as` it is not exported under mypy --strict"
            yield alias.name, line.module


def test_the_table_and_the_imports_for_type_checkers_agree():
    assert dict(imported_for_type_checkers()) == tfdp.runtime._WHERE


def bound_in(source):
    """The names that a module binds at its top."""
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("name", sorted(tfdp.runtime._WHERE))
def test_every_name_is_bound_where_the_table_says(name):
    room = PACKAGE.parent / tfdp.runtime._WHERE[name]
    assert name in bound_in(room / "__init__.py" if room.is_dir() else room.with_suffix(".py"))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'tfdp\.runtime' has no attribute 'allreduse'"):
        _ = tfdp.runtime.allreduse


def test_dir_lists_the_names_before_they_are_loaded():
    assert {"init", "allreduce", "DistributedGradientTape"} <= set(dir(tfdp.runtime))


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_and_starting_a_job_of_one_import_no_framework():
    code = (
        "import sys, tfdp.runtime as dp, tfdp.runtime.launch; dp.init(); assert (dp.rank(), dp.size()) == (0, 1);"
        "print([m for m in ('tensorflow', 'numpy', 'keras') if m in sys.modules])"
    )
    assert python(code) == "[]\n"


def test_no_public_name_is_a_module():
    # The import system sets each submodule as an attribute of its package: it would take the function's place.
    modules = {info.name for info in pkgutil.iter_modules([str(PACKAGE.parent)])}
    assert not modules & set(tfdp.runtime._WHERE)
