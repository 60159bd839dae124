"""Forests that users have made themselves, such as those of boxes."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.forest._forest import Forest
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._registry import Reading


class ForestReader:
    """Reads a :class:`Forest`, which is what it is read to.

    There is no library to compare it with: its raw prediction is that of the core, which explains
    it, too.
    """

    name = "fastpd_sklearn"
    supported = "fastpd_sklearn.forest.Forest"
    tolerance = 1e-10

    def accepts(self, model) -> bool:
        """Whether ``model`` is a :class:`Forest`.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """
        return isinstance(model, Forest)

    def read(self, model) -> Reading:
        """The forest, with columns of numbers for its inputs.

        Parameters
        ----------
        model : Forest

        Returns
        -------
        Reading
        """
        input_map = InputMap(n_columns=model.n_inputs, labels_as_codes=None)
        return Reading(input_map, model, Head(("raw", "predict")))

    def predict_raw(self, model, X) -> np.ndarray:
        """The forest's own prediction.

        Parameters
        ----------
        model : Forest
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        return model.predict(self.read(model).input_map.open(X).to_array()).reshape(X.shape[0], -1)


reader = ForestReader()
