"""The layers of the package, told by what its modules import."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fastpd_sklearn"

LOWER = {"core": set(), "_compat": set(), "forest": {"core", "_compat"}}
"""What the lower layers may import of the package, beside themselves."""

UPPER = {
    "__init__",
    "decomposition",
    "display",
    "distributed",
    "explainers",
    "inspection",
    "model_selection",
    "shap_compat",
}
"""Those that may import the explainers."""

OPTIONAL = (
    *("catboost", "dask", "distributed", "lightgbm", "matplotlib"),
    *("pandas", "polars", "shap", "treelite", "xgboost"),
)

PUBLISHED = {"_estimator_type", "_replace"}
"""Private by name only: scikit-learn's protocol for estimators without tags, named tuples'."""


def sources(*suffixes):
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes)


def layer_of(path):
    """The folder of a module, or the name of one right below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(path.suffix)


def imported_names(path):
    """Dotted names of all modules that a module imports, also within functions."""
    if path.suffix != ".py":
        return re.findall(r"^\s*(?:from|import|cimport)\s+([\w.]+)", path.read_text(), re.M)
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports in this package are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def imported_layers(path):
    names = [name.split(".") for name in imported_names(path)]
    return {parts[1] for parts in names if parts[0] == "fastpd_sklearn" and len(parts) > 1}


def private_uses(path):
    """Private names that a module takes from other libraries, as attributes or by import."""
    tree = ast.parse(path.read_text())
    own = names_of_the_package()  # a class may use what a base in another module has
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            yield from (
                arg.value
                for arg in node.args[1:2]
                if isinstance(arg, ast.Constant) and is_private(arg.value)
            )
    for name in imported_names(path):
        parts = name.split(".")
        if parts[0] != "fastpd_sklearn" and parts[0] not in sys.stdlib_module_names:
            yield from (part for part in parts if is_private(part))


@cache
def names_of_the_package():
    """Names that any module of the package defines."""
    return {name for path in sources(".py") for name in own_names(ast.parse(path.read_text()))}


def own_names(tree):
    """Names that a module itself defines or assigns, as a variable or as an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in PUBLISHED


def test_the_layers_are_there():
    assert {layer_of(path) for path in sources(".py", ".pyx")} >= {*LOWER, "explainers"}


@pytest.mark.parametrize("layer", LOWER)
def test_lower_layers_import_downwards_only(layer):
    for path in sources(".py", ".pyx", ".pxd"):
        if layer_of(path) == layer:
            odd = imported_layers(path) - {layer} - LOWER[layer]
            assert not odd, f"{path.relative_to(PACKAGE)} imports {odd}"


def test_only_upper_layers_import_the_explainers():
    importing = {layer_of(path) for path in sources(".py") if "explainers" in imported_layers(path)}
    assert importing <= UPPER


def test_private_names_of_libraries_stay_in_one_module():
    found = {str(path.relative_to(PACKAGE)): set(private_uses(path)) for path in sources(".py")}
    assert found.pop("_compat.py") >= {"_predictors", "_loss"}  # so that the search finds some
    assert {name: used for name, used in found.items() if used} == {}


def test_compiled_modules_know_nothing_of_users():
    for path in sources(".pyx", ".pxd"):
        found = re.search(
            r"\bisinstance\(|\bpandas\b|\bimport sklearn|\bfrom sklearn", path.read_text()
        )
        assert found is None, f"{path.name}: {found}"


def test_optional_libraries_are_not_imported_unless_used(tmp_path):
    # Some versions of scikit-learn import pandas themselves.
    code = (
        "import sys, sklearn.utils; before = set(sys.modules); import fastpd_sklearn; "
        f"print(*(set({OPTIONAL!r}) & (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
