"""Readers: from a fitted model to ``(InputMap, Forest, Head)``."""

from fastpd_sklearn.forest._forest import Forest, ForestBuilder
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap, Inputs
from fastpd_sklearn.forest._members import NoSumOfTreesError
from fastpd_sklearn.forest._registry import Reader, Reading, find_reader
from fastpd_sklearn.forest._transformers import register_transformer

__all__ = [
    "Forest",
    "ForestBuilder",
    "Head",
    "InputMap",
    "Inputs",
    "NoSumOfTreesError",
    "Reader",
    "Reading",
    "find_reader",
    "register_transformer",
]
