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
        x = _numbers("x", x)
        missing = np.isnan(x)
        if self.single:
            x = _round(x)
        out = self.levels[:, np.searchsorted(self.breaks, x, "right" if self.strict else "left")]
        level = np.full(len(out), np.nan) if self.missing is None else self.missing
        out[:, missing] = level[:, None]
        return out

    def to_dict(self) -> dict:
        """All there is to the function, in lists and plain numbers, such as JSON takes.

        Returns
        -------
        dict
            ``breaks``, ``levels`` (a list an output), ``missing`` (a level an output, or None) and
            ``closed``: "left" if a number that equals a break belongs to the piece above it,
            else "right".

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import StepCurve
        >>> curve = StepCurve(np.array([2.5]), np.array([[1.0, 7.0]]), None, False, False)
        >>> curve.to_dict()
        {'breaks': [2.5], 'levels': [[1.0, 7.0]], 'missing': None, 'closed': 'right'}
        """
        return {
            "breaks": self.breaks.tolist(),
            "levels": self.levels.tolist(),
            "missing": None if self.missing is None else self.missing.tolist(),
            "closed": "left" if self.strict else "right",
        }

    def to_frame(self):
        """One line a piece and output, that of missing values last.

        Returns
        -------
        pandas.DataFrame
            Columns ``lower`` and ``upper``, the ends of the piece (NaN for missing values),
            ``output`` if there are several, and ``value``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import StepCurve
        >>> curve = StepCurve(np.array([2.5]), np.array([[1.0, 7.0]]), None, False, False)
        >>> curve.to_frame()
           lower  upper  value
        0   -inf    2.5    1.0
        1    2.5    inf    7.0
        """
        ends = np.concatenate([[-np.inf], self.breaks, [np.inf]])
        levels = self.levels
        columns = {"lower": ends[:-1], "upper": ends[1:]}
        if self.missing is not None:
            columns = {name: np.append(column, np.nan) for name, column in columns.items()}
            levels = np.column_stack([levels, self.missing])
        return _frame(columns, levels)


@dataclass(frozen=True, eq=False)
class LinearCurve:
    """A function of one number that is a straight line between its breaks.

    Parameters
    ----------
    breaks : ndarray of shape (n_breaks,)
        Where the function may jump or bend, ascending.
    levels, slopes : ndarray of shape (n_outputs, n_breaks + 1)
        The lines, from the lowest piece to the highest: ``levels + slopes * x``. So a level is
        where the line would be at zero, be that within its piece or not.
    missing : ndarray of shape (n_outputs,) or None
        The value at NaN; None where the model takes no missing values.
    strict, single : bool
        See :class:`StepCurve`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.explainers import LinearCurve
    >>> levels, slopes = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    >>> curve = LinearCurve(np.array([2.0]), levels, slopes, None, False, False)
    >>> curve([0.0, 2.0, 3.0])
    array([[1., 1., 6.]])
    >>> curve.corners(0.0, 3.0)[1]
    array([[1., 1., 4., 6.]])
    """

    breaks: np.ndarray
    levels: np.ndarray
    slopes: np.ndarray
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
        x = _numbers("x", x)
        parts = (self._part(lines) for lines in (self.levels, self.slopes))
        level, slope = (part(x) for part in parts)
        missing = np.isnan(x)
        slope[:, missing] = 0.0
        return level + slope * np.where(missing, 0.0, x)

    def _part(self, lines: np.ndarray) -> StepCurve:
        """Levels or slopes as a function of their own."""
        return StepCurve(self.breaks, lines, self.missing, self.strict, self.single)

    def corners(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of all lines within an interval: joined by lines, they are the function.

        Parameters
        ----------
        low, high : float

        Returns
        -------
        points : ndarray of shape (n_points,), ascending
            At a break the last number before it and the first one behind it.
        values : ndarray of shape (n_outputs, n_points)

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import LinearCurve
        >>> levels, slopes = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
        >>> curve = LinearCurve(np.array([2.0]), levels, slopes, None, False, False)
        >>> points, values = curve.corners(0.0, 3.0)
        >>> points.round(6), values
        (array([0., 2., 2., 3.]), array([[1., 1., 4., 6.]]))
        """
        breaks = self.breaks[(self.breaks > low) & (self.breaks < high)]
        dtype = np.float32 if self.single else np.float64
        towards = dtype(-np.inf if self.strict else np.inf)
        beside = np.nextafter(breaks.astype(dtype), towards).astype(np.float64)
        points = np.unique(np.concatenate([[low], breaks, beside, [high]]))
        points = points[(points >= low) & (points <= high)]
        return points, self(points)

    def to_dict(self) -> dict:
        """All there is to the function, in lists and plain numbers, such as JSON takes.

        Returns
        -------
        dict
            ``breaks``, ``levels`` and ``slopes`` (a list an output), ``missing`` and ``closed``
            as of :class:`StepCurve`.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import LinearCurve
        >>> levels, slopes = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
        >>> curve = LinearCurve(np.array([2.0]), levels, slopes, None, False, False)
        >>> plain = curve.to_dict()
        >>> plain["breaks"], plain["levels"], plain["slopes"]
        ([2.0], [[1.0, 0.0]], [[0.0, 2.0]])
        """
        known = self._part(self.levels).to_dict()
        return {**known, "slopes": self.slopes.tolist()}

    def to_frame(self):
        """One line a piece and output, that of missing values last.

        Returns
        -------
        pandas.DataFrame
            Columns ``lower`` and ``upper``, the ends of the piece (NaN for missing values),
            ``output`` if there are several, ``level`` and ``slope``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import LinearCurve
        >>> levels, slopes = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
        >>> curve = LinearCurve(np.array([2.0]), levels, slopes, None, False, False)
        >>> curve.to_frame()
           lower  upper  level  slope
        0   -inf    2.0    1.0    0.0
        1    2.0    inf    0.0    2.0
        """
        frame = self._part(self.levels).to_frame().rename(columns={"value": "level"})
        slopes = self.slopes
        if self.missing is not None:
            slopes = np.column_stack([slopes, np.zeros(len(slopes))])
        return frame.assign(slope=slopes.ravel())


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
        labels = _points("x", np.asarray(x, dtype=object)).tolist()
        unknown = [label for label in labels if _key(label) not in place]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not among the curve's categories {self.categories.tolist()}"
            )
        return self.levels[:, [place[_key(label)] for label in labels]]

    def to_dict(self) -> dict:
        """All there is to the function, in lists.

        Returns
        -------
        dict
            ``categories``, None for missing, and ``levels`` (a list an output): JSON takes it
            where it takes the labels.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import CategoryCurve
        >>> curve = CategoryCurve(np.array(["a", "b"]), np.array([[1.0, 7.0]]))
        >>> curve.to_dict()
        {'categories': ['a', 'b'], 'levels': [[1.0, 7.0]]}
        """
        categories = [_key(label) for label in self.categories.tolist()]
        return {"categories": categories, "levels": self.levels.tolist()}

    def to_frame(self):
        """One line a category and output.

        Returns
        -------
        pandas.DataFrame
            Columns ``category``, ``output`` if there are several, and ``value``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import CategoryCurve
        >>> curve = CategoryCurve(np.array(["a", "b"]), np.array([[1.0, 7.0]]))
        >>> curve.to_frame()
          category  value
        0        a    1.0
        1        b    7.0
        """
        return _frame({"category": self.categories}, self.levels)


@dataclass(frozen=True, eq=False)
class StepSurface:
    """A function of two numbers that is constant on rectangles.

    Parameters
    ----------
    breaks : tuple of two ndarray
        Where the function may jump along each of the numbers, ascending.
    levels : ndarray of shape (n_outputs, n_pieces of the first, n_pieces of the second)
        Its values. Along each number the pieces ascend, and that of missing values comes last.
    allow_nan : bool
        Whether there are pieces of missing values.
    strict, single : bool
        See :class:`StepCurve`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.explainers import StepSurface
    >>> levels = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> surface = StepSurface((np.array([0.0]), np.array([5.0])), levels, False, False, False)
    >>> surface([-1.0, 1.0], [9.0, 5.0])
    array([[2., 3.]])
    """

    breaks: tuple[np.ndarray, np.ndarray]
    levels: np.ndarray
    allow_nan: bool
    strict: bool
    single: bool

    def __call__(self, x, y) -> np.ndarray:
        """Evaluate at points.

        Parameters
        ----------
        x, y : array-like of shape (n_points,)

        Returns
        -------
        ndarray of shape (n_outputs, n_points)
            NaN at missing values that the model does not take.
        """
        x, y = _numbers("x", x), _numbers("y", y)
        if len(x) != len(y) and 1 not in (len(x), len(y)):
            raise ValueError(
                f"x has {len(x)} points and y has {len(y)}; pass as many of both, or one number"
            )
        x, y = np.broadcast_arrays(x, y)
        places = [self._place(v, breaks) for v, breaks in zip((x, y), self.breaks, strict=True)]
        out = self.levels[:, places[0], places[1]]
        if not self.allow_nan:
            out[:, np.isnan(x) | np.isnan(y)] = np.nan
        return out

    def _place(self, x: np.ndarray, breaks: np.ndarray) -> np.ndarray:
        missing = np.isnan(x)
        x = _round(x) if self.single else x
        place = np.searchsorted(breaks, x, "right" if self.strict else "left")
        return np.where(missing, len(breaks) + 1 if self.allow_nan else 0, place)

    def to_dict(self) -> dict:
        """All there is to the function, in lists and plain numbers, such as JSON takes.

        Returns
        -------
        dict
            ``breaks`` (two lists), ``levels`` (nested lists: outputs, pieces of the first number,
            pieces of the second), ``allow_nan``, and ``closed`` as of :class:`StepCurve`.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import StepSurface
        >>> levels = np.array([[[1.0, 2.0], [3.0, 4.0]]])
        >>> surface = StepSurface((np.array([0.0]), np.array([5.0])), levels, False, False, False)
        >>> plain = surface.to_dict()
        >>> plain["breaks"], plain["levels"], plain["closed"]
        ([[0.0], [5.0]], [[[1.0, 2.0], [3.0, 4.0]]], 'right')
        """
        return {
            "breaks": [breaks.tolist() for breaks in self.breaks],
            "levels": self.levels.tolist(),
            "allow_nan": self.allow_nan,
            "closed": "left" if self.strict else "right",
        }

    def to_frame(self):
        """One line a rectangle and output.

        Returns
        -------
        pandas.DataFrame
            Columns ``lower_0``, ``upper_0``, ``lower_1``, ``upper_1`` (NaN for missing values),
            ``output`` if there are several, and ``value``.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.explainers import StepSurface
        >>> levels = np.array([[[1.0, 2.0], [3.0, 4.0]]])
        >>> surface = StepSurface((np.array([0.0]), np.array([5.0])), levels, False, False, False)
        >>> surface.to_frame()
           lower_0  upper_0  lower_1  upper_1  value
        0     -inf      0.0     -inf      5.0    1.0
        1     -inf      0.0      5.0      inf    2.0
        2      0.0      inf     -inf      5.0    3.0
        3      0.0      inf      5.0      inf    4.0
        """
        shape = self.levels.shape[1:]
        columns = {}
        for k, (breaks, place) in enumerate(zip(self.breaks, np.indices(shape), strict=True)):
            lower = np.concatenate([[-np.inf], breaks, [np.nan]])
            upper = np.concatenate([breaks, [np.inf, np.nan]])
            columns[f"lower_{k}"] = lower[place.ravel()]
            columns[f"upper_{k}"] = upper[place.ravel()]
        return _frame(columns, self.levels.reshape(len(self.levels), -1))


def _frame(columns: dict, levels: np.ndarray):
    """A data frame of levels of shape (n_outputs, n_lines), output after output."""
    import pandas as pd

    n_outputs, n_lines = levels.shape
    columns = {name: np.tile(column, n_outputs) for name, column in columns.items()}
    if n_outputs > 1:
        columns["output"] = np.repeat(np.arange(n_outputs), n_lines)
    return pd.DataFrame({**columns, "value": levels.ravel()})


def _key(label):
    """What a label is looked up by: all missing values are one."""
    differs = label != label  # pandas' own missing value says neither yes nor no
    if label is None or not isinstance(differs, bool | np.bool_):
        return None
    return None if differs else label


def _numbers(name: str, x) -> np.ndarray:
    """Points of a curve as numbers."""
    try:
        numbers = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={x!r} should be numbers, NaN where they are missing") from None
    return _points(name, numbers)


def _points(name: str, x: np.ndarray) -> np.ndarray:
    if x.ndim > 1:
        raise ValueError(
            f"{name} has shape {x.shape}; a curve is evaluated at one number, or at a list of them"
        )
    return np.atleast_1d(x)


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
    points = _ascending(np.asarray(points, dtype=np.float64))
    if not single:
        return points
    towards = np.float32(np.inf if strict else -np.inf)
    with np.errstate(over="ignore"):
        rounded = points.astype(np.float32)
        wrong = rounded < points if strict else rounded > points
        rounded[wrong] = np.nextafter(rounded[wrong], towards)
    return _ascending(rounded.astype(np.float64))


def _ascending(points: np.ndarray) -> np.ndarray:
    """Different points in ascending order, as the core has them already."""
    return points if np.all(points[:-1] < points[1:]) else np.unique(points)


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
