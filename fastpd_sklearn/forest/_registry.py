"""Which reader takes which model; other packages can add theirs."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.pipeline import Pipeline

from fastpd_sklearn.forest._forest import Forest
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap

ENTRY_POINT_GROUP = "fastpd_sklearn.readers"

_BUILT_IN = {
    "fastpd_sklearn": "fastpd_sklearn.forest._forests:reader",
    "sklearn": "fastpd_sklearn.forest._sklearn:reader",
    "xgboost": "fastpd_sklearn.forest._xgboost:reader",
    "lightgbm": "fastpd_sklearn.forest._lightgbm:reader",
    "catboost": "fastpd_sklearn.forest._catboost:reader",
    "treelite": "fastpd_sklearn.forest._treelite:reader",
}


class Reading(NamedTuple):
    """A model as a reader sees it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.forest import find_reader
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> input_map, forest, head = find_reader(model).read(model)
    >>> input_map.n_columns, forest, head.additive
    (2, Forest(n_trees=1, n_nodes=5, n_inputs=2, n_outputs=1), ('raw', 'predict'))
    """

    input_map: InputMap
    forest: Forest
    head: Head


class Reader(Protocol):
    """What a library's reader offers.

    Attributes
    ----------
    name : str
        The library, for messages.
    supported : str
        Models that can be read, for messages.
    tolerance : float
        Largest error of the parsed forest's raw prediction that is rounding, relative to
        :meth:`Forest.scale`: 1e-5 for a library that predicts in float32, else 1e-10.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.forest import find_reader
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> reader = find_reader(model)
    >>> reader.name, reader.tolerance
    ('scikit-learn', 1e-10)
    >>> reading = reader.read(model)
    >>> inputs = reading.input_map.open(X).to_array()
    >>> bool(np.allclose(reading.forest.predict(inputs), reader.predict_raw(model, X)[:, 0]))
    True
    """

    name: str
    supported: str
    tolerance: float

    def accepts(self, model) -> bool:
        """Whether the model's type is one that :meth:`read` knows.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """

    def read(self, model) -> Reading:
        """Read a fitted model.

        Parameters
        ----------
        model : object

        Returns
        -------
        Reading

        Raises
        ------
        sklearn.exceptions.NotFittedError, ValueError
            Which says why it cannot be read.
        """

    def predict_raw(self, model, X) -> np.ndarray:
        """The library's own raw prediction.

        Parameters
        ----------
        model : object
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """


def rounding_of(reader: Reader, reading: Reading) -> np.ndarray:
    """Largest error of a reading's raw prediction that is rounding, of shape (n_outputs,)."""
    if reading.head.rounding is not None:
        return reading.head.rounding
    return reader.tolerance * reading.forest.scale()


@cache
def _reader_specs() -> dict[str, str]:
    found = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    return {**_BUILT_IN, **found}


def find_reader(model) -> Reader | None:
    """The reader that takes a model, by the package that one of the model's classes is from.

    A pipeline is read by the reader of its last step.

    Parameters
    ----------
    model : object

    Returns
    -------
    Reader or None

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.forest import find_reader
    >>> find_reader(DecisionTreeRegressor()).name
    'scikit-learn'
    >>> find_reader(LinearRegression()) is None
    True
    """
    if isinstance(model, Pipeline):
        return import_module("fastpd_sklearn.forest._pipeline").find_pipeline_reader(model)
    specs = _reader_specs()
    for cls in type(model).__mro__:
        spec = specs.get(cls.__module__.partition(".")[0])
        if spec is not None:
            module, _, attribute = spec.partition(":")
            reader = getattr(import_module(module), attribute or "reader")
            if reader.accepts(model):
                return reader
    return None
