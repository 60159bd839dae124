"""Every public name is on the page of the reference, and nothing else is."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "doc" / "api.rst"
PACKAGE = Path(importlib.import_module("fastpd_sklearn").__file__).parent
PUBLIC = sorted(
    path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "core"
)


def listed():
    """Names by module, as the page lists them."""
    names, module = {}, None
    for line in PAGE.read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   (\w+)$", line):
            names.setdefault(module, set()).add(match[1])
    return names


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_listed(package):
    module = importlib.import_module(f"fastpd_sklearn.{package}")
    known = set().union(*listed().values()) if package == "explainers" else set()
    here = listed().get(module.__name__, set())
    assert set(module.__all__) - here - known == set()


def test_what_is_listed_exists():
    for module, names in listed().items():
        assert names <= set(dir(importlib.import_module(module))), module
