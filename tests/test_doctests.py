"""The examples in all docstrings and in the account of the design run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import fastpd_sklearn

MODULES = [m.name for m in pkgutil.walk_packages(fastpd_sklearn.__path__, "fastpd_sklearn.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_design():
    path = Path(__file__).parents[1] / "doc" / "design.rst"
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.attempted > 20
    assert result.failed == 0
