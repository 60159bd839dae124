"""The examples in all docstrings and on all pages of the documentation run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import fastpd_sklearn
from tests.versions import older

PAGES = sorted((Path(__file__).parents[1] / "doc").glob("*.rst"))
MODULES = [m.name for m in pkgutil.walk_packages(fastpd_sklearn.__path__, "fastpd_sklearn.")]

PRINTED_WITH = {"scikit-learn": "1.9", "xgboost": "3.1", "pandas": "3.0"}
"""Trees are grown otherwise and frames are printed otherwise before."""


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    if name.startswith("fastpd_sklearn.distributed"):
        pytest.importorskip("dask")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages(page):
    for library in set(re.findall(r"^>>> (?:from|import) (\w+)", page.read_text("utf-8"), re.M)):
        pytest.importorskip(library)
    if any(older(library, release) for library, release in PRINTED_WITH.items()):
        pytest.skip("the page prints numbers of later releases")
    flags = doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(page), False, encoding="utf-8", optionflags=flags)
    assert result.attempted > 20 or page.stem != "design"
    assert result.failed == 0
