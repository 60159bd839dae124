"""The examples in the docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import fastpd_sklearn.explainers as package

MODULES = [name for _, name, _ in pkgutil.iter_modules(package.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"{package.__name__}.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("name", package.__all__)
def test_public_objects_are_documented(name):
    public = getattr(package, name)
    assert public.__doc__
    for attribute, value in vars(public).items():
        if not attribute.startswith("_") and callable(value):
            assert value.__doc__, attribute
