"""How far a partial dependence is from a monotone one."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import isotonic_regression

from fastpd_sklearn.explainers import LinearCurve, StepCurve, _checks
from fastpd_sklearn.forest import _rows
from fastpd_sklearn.model_selection._components import ROUNDING, explain, size_of
from fastpd_sklearn.model_selection._players import columns_as_players, others_together

DIRECTIONS = ("increasing", "decreasing")

MEASURES = ("variation", "variance")


def monotonicity_violation(
    estimator,
    X,
    feature,
    direction="increasing",
    *,
    measure="variation",
    relative=True,
    target=None,
    sample_weight=None,
) -> float:
    """How much of a feature's partial dependence goes the wrong way.

    The partial dependence of a tree ensemble on a number is a step function. Between the
    smallest and the largest value of the feature in ``X`` it rises by ``P`` and falls by ``N`` in
    total, over all of its steps: ``P + N`` is its total variation (Jordan's decomposition).

    * ``measure="variation"``: ``N / (P + N)`` where it should increase, ``P / (P + N)`` where it
      should decrease. It counts every step alike, whether there is data or not.
    * ``measure="variance"``: the mean squared distance, over the rows of ``X``, of the curve from
      the nearest curve that is monotone in this direction (isotonic regression), divided by the
      variance of the curve. It weighs by data, and small wiggles hardly count.

    Both are 0 if and only if the curve is monotone in this direction, over the range of ``X``
    the first and at the rows of ``X`` the second, and 1 if it is monotone in the other one.
    Steps up to rounding, 1e-12 of the largest value of the curve, are taken for none. A monotone
    mean does not make each row's curve monotone.

    Parameters
    ----------
    estimator : object
        A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` can read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows over which partial dependence is the mean, and which give the range.
    feature : int or str
        A column of numbers; its missing values have no place in the order and are left out.
    direction : {"increasing", "decreasing"}, default="increasing"
        How the response should move with the feature.
    measure : {"variation", "variance"}, default="variation"
        See above.
    relative : bool, default=True
        Whether to divide by the variation or variance of the curve. Otherwise the unit is that of
        the response, squared for "variance".
    target : object, default=None
        A class label, or the number of an output, where the model has several. None: all are
        added up, above and below, with the same direction for each.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    float
        Of a constant curve 0.

    Raises
    ------
    ValueError
        If the feature is a column of categories, or the model is no step function of it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import monotonicity_violation
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 2.0, 1.0, 2.0])  # +2 -1 +1
    >>> monotonicity_violation(model, X, 0)
    0.25
    >>> monotonicity_violation(model, X, 0, "decreasing", relative=False)
    3.0
    """
    check_choices(direction, measure)
    X = _checks.check_rows(X)
    weights = _checks.check_weights(sample_weight, X.shape[0])
    players = columns_as_players(X)
    column = players.find(feature)
    groups = others_together(players, [column])
    explainer = explain(estimator, X, weights, features=[column], groups=groups, target=target)
    curve = explainer.partial_dependence(column).get("curve")
    _check_curve(curve, feature)
    values, weights = _numbers(X, column, weights)
    if not len(values):
        return 0.0
    sign = 1.0 if direction == "increasing" else -1.0
    if measure == "variation":
        wrong, total = _wrong_variation(curve, sign, values.min(), values.max())
    else:
        wrong, total = _wrong_variance(curve, sign, values, weights)
    return wrong / total if relative and total > 0 else wrong


def check_choices(direction, measure) -> None:
    """Refuse a ``direction`` or ``measure`` that there is not."""
    _checks.check_choice("direction", direction, DIRECTIONS)
    _checks.check_choice("measure", measure, MEASURES)


def _check_curve(curve, feature) -> None:
    if not isinstance(curve, StepCurve | LinearCurve):
        what = "has no steps" if curve is None else "is a function of categories, without an order"
        raise ValueError(
            f"feature={feature!r}: the partial dependence on it {what}, so that it cannot be "
            "monotone; name a column of numbers"
        )


def _numbers(X, column: int, weights) -> tuple[np.ndarray, np.ndarray | None]:
    """Values of a column that are there and weigh something, and their weights."""
    values = np.asarray(_rows.column_array(X, column), dtype=np.float64)
    kept = ~np.isnan(values)
    if weights is None:
        return values[kept], None
    kept &= weights > 0
    return values[kept], weights[kept]


def _wrong_variation(curve: StepCurve | LinearCurve, sign: float, low, high) -> tuple[float, float]:
    if isinstance(curve, LinearCurve):
        levels = curve.corners(low, high)[1]
    else:
        breaks = curve.breaks[(curve.breaks > low) & (curve.breaks < high)]
        # At its own breaks a curve has the value of the piece on one side, always the same one.
        levels = curve(np.concatenate([[low], breaks, [high]]))
    steps = sign * np.diff(levels, axis=1)
    steps[np.abs(steps) <= _rounding(levels)] = 0.0
    return float(np.abs(steps[steps < 0]).sum()), float(np.abs(steps).sum())


def _wrong_variance(
    curve: StepCurve | LinearCurve, sign: float, values: np.ndarray, weights: np.ndarray | None
) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    weights = None if weights is None else weights[order]
    levels = curve(values[order])
    nearest = [
        isotonic_regression(level, sample_weight=weights, increasing=sign > 0) for level in levels
    ]
    distance = levels - np.array(nearest)
    distance[np.abs(distance) <= _rounding(levels)] = 0.0
    wrong = float(np.average(distance**2, axis=1, weights=weights).sum())
    return wrong, size_of(levels.T, "variance", weights)


def _rounding(levels: np.ndarray) -> float:
    return ROUNDING * float(np.abs(levels).max())
