"""Comparing an explainer with a game that was enumerated."""

from itertools import combinations

import numpy as np
from numpy.testing import assert_array_less

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from tests import oracles

EXPLAINERS = {"empirical": FastPDExplainer, "path": PathDependentExplainer}
OUTPUTS = list(oracles.INDICES)
_LARGEST = {"shap": 1, "shap_interaction": 2}
_AUTO = {"pd": 1, "component": 2, "shap": 1, "shap_interaction": 2, "banzhaf": 1, "total": 1}


def terms_of(output, n_players):
    """All terms that an output can have."""
    sizes = range(1, _LARGEST.get(output, n_players) + 1)
    return [T for k in sizes for T in combinations(range(n_players), k)]


def make_explainer(coverage, output, names, max_order="auto", **params):
    """An explainer that shows every term that can be other than zero."""
    if output == "pd":  # no PD function is zero: name them all
        largest = len(names) if max_order is None else max_order
        terms = [T for T in terms_of("pd", len(names)) if len(T) <= largest]
        params["features"] = [tuple(names[k] for k in T) for T in terms]
    return EXPLAINERS[coverage](output=output, max_order=max_order, n_jobs=1, **params)


def assert_close(actual, truth, scale, tolerance=1e-10):
    """``|actual - truth| <= tolerance * scale``; the last axis is that of the outputs."""
    error = np.abs(np.asarray(actual) - truth)
    assert error.shape == np.shape(truth)
    assert_array_less(error, np.broadcast_to(tolerance * scale + 1e-300, error.shape))


def assert_is_game(explainer, X, game, names, scale, tolerance=1e-10):
    """All terms of the explainer have the game's values, and those not shown are zero."""
    output = explainer.output
    scale = np.asarray(scale)
    values = explainer.transform(X).reshape(len(X), len(explainer.terms_), -1)
    place = {term: i for i, term in enumerate(explainer.terms_)}
    assert_close(explainer.intercept_, game[()][0], scale, tolerance)
    largest = {None: len(names), "auto": _AUTO[output]}.get(
        explainer.max_order, explainer.max_order
    )
    for T in terms_of(output, len(names)):
        if len(T) > largest:
            continue
        truth = oracles.INDICES[output](game, T)
        column = place.pop(tuple(names[k] for k in T), None)
        shown = np.zeros_like(truth) if column is None else values[:, column]
        assert_close(shown, truth, scale, tolerance)
    assert not place
