"""Partial dependence on one feature, exact everywhere and not only on a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class StepCurve:
    """A function of one number that is constant between its breaks.

    Parameters
    ----------
    breaks : ndarray of shape (n_breaks,)
        Where the function may jump, ascending.
    levels : ndarray of shape (n_outputs, n_breaks + 1)
        Its values between the breaks, from the lowest piece to the highest.
    missing : ndarray of shape (n_outputs,) or None
        Its value at NaN; None where the model takes no missing values.
    strict : bool
        Whether a number that equals a break belongs to the piece above it.
    single : bool
        Whether numbers are rounded to float32 before they meet the breaks, as the model's
        library does.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.explainers import StepCurve
    >>> curve = StepCurve(np.array([2.5]), np.array([[1.0, 7.0]]), None, False, False)
    >>> curve([0.0, 2.5, 2.6])
    array([[1., 1., 7.]])
    """

    breaks: np.ndarray
    levels: np.ndarray
    missing: np.ndarray | None
    strict: bool
    single: bool

    def __call__(self, x) -> np.ndarray:
        """Evaluate.

        Parameters
        ----------
        x : array-like of shape (n_points,)

        Returns
        -------
        ndarray of shape (n_outputs, n_points)
            NaN at missing values that the model does not take.
        """
        x = np.atleast_1d(np.asarray(x, dtype=np.float64))
        missing = np.isnan(x)
        if self.single:
            x = _round(x)
        out = self.levels[:, np.searchsorted(self.breaks, x, "right" if self.strict else "left")]
        level = np.full(len(out), np.nan) if self.missing is None else self.missing
        out[:, missing] = level[:, None]
        return out


@dataclass(frozen=True, eq=False)
class CategoryCurve:
    """A function of one label.

    It has no ``breaks``, as :class:`StepCurve` has: labels are not on a line.

    Parameters
    ----------
    categories : ndarray of shape (n_categories,), object
        The labels; NaN for missing comes last, if the background has missing values.
    levels : ndarray of shape (n_outputs, n_categories)
        The values of the function, in the order of ``categories``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.explainers import CategoryCurve
    >>> CategoryCurve(np.array(["a", "b"]), np.array([[1.0, 7.0]]))(["b", "a"])
    array([[7., 1.]])
    """

    categories: np.ndarray
    levels: np.ndarray

    def __call__(self, x) -> np.ndarray:
        """Evaluate.

        Parameters
        ----------
        x : array-like of shape (n_points,)

        Returns
        -------
        ndarray of shape (n_outputs, n_points)

        Raises
        ------
        ValueError
            If a label is not among the categories.
        """
        place = {_key(label): i for i, label in enumerate(self.categories.tolist())}
        labels = np.atleast_1d(np.asarray(x, dtype=object)).tolist()
        unknown = [label for label in labels if _key(label) not in place]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not among the curve's categories {self.categories.tolist()}"
            )
        return self.levels[:, [place[_key(label)] for label in labels]]


def _key(label):
    """What a label is looked up by: all missing values are one."""
    return None if label is None or label != label else label


def _round(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(np.float64)


def effective_breaks(points: np.ndarray, strict: bool, single: bool) -> np.ndarray:
    """Split points as the values that a library really compares with.

    Parameters
    ----------
    points : ndarray of shape (n_points,), float64
    strict, single : bool
        See :class:`StepCurve`.

    Returns
    -------
    ndarray of shape (n_breaks,), float64, ascending
        With ``single`` they are float32 numbers: ``x <= t`` of a float32 ``x`` is ``x`` at most
        the largest float32 up to ``t``; ``x < t`` is ``x`` below the smallest float32 from ``t``.
    """
    points = np.unique(np.asarray(points, dtype=np.float64))
    if not single:
        return points
    towards = np.float32(np.inf if strict else -np.inf)
    with np.errstate(over="ignore"):
        rounded = points.astype(np.float32)
        beyond = np.nextafter(rounded, towards)
    wrong = rounded < points if strict else rounded > points
    return np.unique(np.where(wrong, beyond, rounded).astype(np.float64))


def piece_points(breaks: np.ndarray, strict: bool, single: bool) -> np.ndarray:
    """One number within each piece.

    Parameters
    ----------
    breaks : ndarray of shape (n_breaks,), float64
        From :func:`effective_breaks`.
    strict, single : bool

    Returns
    -------
    ndarray of shape (n_breaks + 1,), float64
    """
    if not len(breaks):
        return np.zeros(1)
    dtype = np.float32 if single else np.float64
    largest = np.finfo(dtype).max
    with np.errstate(over="ignore"):
        below = np.nextafter(dtype(breaks[0]), dtype(-np.inf))
        above = np.nextafter(dtype(breaks[-1]), dtype(np.inf))
    points = [[below], breaks] if strict else [breaks, [above]]
    # A test that tells numbers from missing values alone has its break at infinity.
    return np.clip(np.concatenate(points).astype(np.float64), -largest, largest)
