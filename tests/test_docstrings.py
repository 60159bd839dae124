"""Everything public is documented with an example; that these run is tested with all doctests."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PACKAGE = Path(importlib.import_module("fastpd_sklearn").__file__).parent
MODULES = ["fastpd_sklearn.shap_compat"] + [
    f"fastpd_sklearn.{path.parent.name}"
    for path in sorted(PACKAGE.glob("*/__init__.py"))
    if path.parent.name != "core"
]
PUBLIC = [
    pytest.param(getattr(importlib.import_module(module), name), id=f"{module}.{name}")
    for module in MODULES
    for name in importlib.import_module(module).__all__
]

SHOWN_BY_ITS_CLASS = {"plot", "from_estimator", "from_search"}
"""What draws: the example of a display is one of these."""


def methods(public):
    """Public methods of a class that this package has written, inherited ones among them."""
    for name, method in inspect.getmembers(public, callable):
        ours = (getattr(method, "__module__", None) or "").startswith("fastpd_sklearn")
        if ours and not name.startswith("_") and not inspect.isclass(method):
            yield name, method


def described(docstring):
    """Names that stand before a colon at the left of a numpydoc section."""
    lines = re.findall(r"^([*\w][\w*, ]*?)(?: :.*)?$", inspect.cleandoc(docstring), re.M)
    return {name.strip(" *") for line in lines for name in line.split(",")}


@pytest.mark.parametrize("public", PUBLIC)
def test_public_objects_have_an_example(public):
    assert ">>> " in (public.__doc__ or "")


@pytest.mark.parametrize("public", [case for case in PUBLIC if inspect.isclass(case.values[0])])
def test_methods_have_an_example(public):
    is_protocol = getattr(public, "_is_protocol", False)
    for name, method in methods(public):
        assert method.__doc__, name
        if not is_protocol and name not in SHOWN_BY_ITS_CLASS:
            assert ">>> " in method.__doc__, name


@pytest.mark.parametrize("public", PUBLIC)
def test_parameters_are_described(public):
    found = dict(methods(public)) if inspect.isclass(public) else {}
    for name, function in {"": public, **found}.items():
        if isinstance(public, type) and (name == "" and issubclass(public, Exception | tuple)):
            continue
        text = function.__doc__ or ""
        for parameter in inspect.signature(function).parameters:
            if parameter not in ("self", "args", "kwargs") and not parameter.startswith("_"):
                assert parameter in described(text), f"{name}: {parameter}"
