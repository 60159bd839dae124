"""Accumulated local effects of one feature, and of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers._columns import place_labels


@dataclass(frozen=True, eq=False, repr=False)
class ALECurve:
    """The accumulated local effect of one feature.

    Parameters
    ----------
    features : tuple of str
        The feature's name.
    columns : tuple of int
        Its number.
    output_names : tuple of str
    grid_values : tuple of ndarray
        One array of shape (n_points,): the edges of the bins, ascending; of a categorical
        feature its categories in the order in which effects are accumulated. A single point if
        the feature does not vary.
    effect : ndarray of shape (n_outputs, n_points)
        In the unit of the response. The mean over the rows of the background is zero.
    local_effect, local_std : ndarray of shape (n_outputs, n_bins)
        Mean and standard deviation of the differences of responses within each bin; the bins
        are the steps between neighbouring points.
    bin_counts : ndarray of shape (n_bins,), int
        Rows in each bin; of a categorical feature, rows in each category (n_points,). The one
        bin of a feature that does not vary has all rows.
    lower, upper : ndarray of shape (n_outputs, n_points), or None
        Confidence limits of the effect; None if no confidence was asked for.
    n_outside : int
        Rows of the background that count for nothing here: missing, infinite, or beyond edges
        that the user gave.
    is_categorical : bool

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fastpd_sklearn import ALEExplainer
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = LinearRegression().fit(X, 3 * X[:, 0])
    >>> curve = ALEExplainer(n_bins=2).fit(model, X).effects_[0]
    >>> curve.grid_values[0], curve.bin_counts
    (array([0., 3., 7.]), array([4, 4]))
    >>> curve([0.0, 3.0, 7.0]).round(6)
    array([[-10.5,  -1.5,  10.5]])
    """

    features: tuple[str, ...]
    columns: tuple[int, ...]
    output_names: tuple[str, ...]
    grid_values: tuple[np.ndarray, ...]
    effect: np.ndarray
    local_effect: np.ndarray
    local_std: np.ndarray
    bin_counts: np.ndarray
    lower: np.ndarray | None
    upper: np.ndarray | None
    n_outside: int
    is_categorical: bool

    def __repr__(self) -> str:
        return f"ALECurve({self.features[0]!r}, n_points={len(self.grid_values[0])})"

    def __call__(self, x) -> np.ndarray:
        """Evaluate: between the points by straight lines, beyond the outermost like there.

        Parameters
        ----------
        x : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_outputs, n_rows)
            NaN for missing values.

        Raises
        ------
        ValueError
            For a category that the background does not have.
        """
        points = self.grid_values[0]
        if self.is_categorical:
            return self._look_up(np.asarray(x, dtype=object).ravel().tolist())
        x = np.asarray(x, dtype=np.float64).ravel()
        # NumPy gives what is missing no reliable place.
        at = np.where(np.isnan(x), points[0], x)
        out = np.stack([np.interp(at, points, effect) for effect in self.effect])
        out[:, np.isnan(x)] = np.nan
        return out

    def _look_up(self, labels: list) -> np.ndarray:
        points = self.grid_values[0]
        place = place_labels(points, labels)
        if np.any(place == -2):
            unknown = labels[int(np.argmax(place == -2))]
            raise ValueError(
                f"{unknown!r} is not among the categories of {self.features[0]!r} in the "
                f"background, {points.tolist()}, so that it has no effect that is known; fit to a "
                "background with it, or replace it"
            )
        out = self.effect[:, place]
        out[:, place < 0] = np.nan
        return out


@dataclass(frozen=True, eq=False, repr=False)
class ALESurface:
    """The accumulated local effect of two features beyond what each has alone.

    Parameters
    ----------
    features : tuple of str
        The names of the two.
    columns : tuple of int
        Their numbers.
    output_names : tuple of str
    grid_values : tuple of ndarray
        The edges of the bins of the first feature and of the second.
    effect : ndarray of shape (n_outputs, n_points of the first, n_points of the second)
        In the unit of the response. Neither feature has a first-order effect in it, and its
        mean over the rows of the background is zero.
    bin_counts : ndarray of shape (n_bins of the first, n_bins of the second), int
        Rows in each cell.
    is_filled : ndarray of shape (n_bins of the first, n_bins of the second), bool
        Cells without rows: they have the local effect of the nearest cell that has some.
    n_outside : int
        Rows of the background that count for nothing here, since one of the two is missing,
        infinite, or beyond edges that the user gave.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn import ALEExplainer
    >>> class Product:
    ...     def predict(self, X):
    ...         return X[:, 0] * X[:, 1]
    >>> X = np.array([[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)])
    >>> surface = ALEExplainer(features=[(0, 1)]).fit(Product(), X).effects_[0]
    >>> surface.effect[0]  # (a - 1) * (b - 1)
    array([[ 1.,  0., -1.],
           [ 0.,  0.,  0.],
           [-1.,  0.,  1.]])
    """

    features: tuple[str, ...]
    columns: tuple[int, ...]
    output_names: tuple[str, ...]
    grid_values: tuple[np.ndarray, ...]
    effect: np.ndarray
    bin_counts: np.ndarray
    is_filled: np.ndarray
    n_outside: int

    def __repr__(self) -> str:
        shape = " x ".join(str(len(points)) for points in self.grid_values)
        return f"ALESurface({self.features!r}, {shape} points)"

    def __call__(self, first, second) -> np.ndarray:
        """Evaluate: between the points bilinearly, beyond the outermost like there.

        Parameters
        ----------
        first, second : array-like of shape (n_rows,)

        Returns
        -------
        ndarray of shape (n_outputs, n_rows)
            NaN where one of the two is missing.
        """
        (i, u), (j, v) = (
            _between(np.asarray(x, dtype=np.float64).ravel(), points)
            for x, points in zip((first, second), self.grid_values, strict=True)
        )
        e = self.effect
        if 1 in e.shape[1:]:  # a feature that does not vary has no interaction
            return np.where(np.isnan(u + v), np.nan, np.zeros((len(e), 1)))
        lower = e[:, i, j] * (1 - v) + e[:, i, j + 1] * v
        upper = e[:, i + 1, j] * (1 - v) + e[:, i + 1, j + 1] * v
        return lower * (1 - u) + upper * u


def _between(x: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bin of each number, and where within it: from 0 to 1, NaN for missing."""
    place = np.clip(np.searchsorted(points, x) - 1, 0, max(len(points) - 2, 0))
    width = points[np.minimum(place + 1, len(points) - 1)] - points[place]
    at = np.clip(x, points[0], points[-1])
    return place, (at - points[place]) / np.where(width > 0, width, 1.0)
