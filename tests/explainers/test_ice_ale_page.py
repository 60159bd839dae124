"""The page about both says what is so."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "doc" / "ice_ale.rst"


def test_the_page():
    flags = doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.attempted > 10
    assert result.failed == 0
