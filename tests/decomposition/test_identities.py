"""Components add up, are identified by the background, and make up SHAP values.

On models of all libraries with missing values, categories and several outputs; by the library's
own predictions or, where those are in float32, by the slow rules of ``oracles``.
"""

from functools import cache

import numpy as np
import pytest

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from tests import oracles
from tests.truth.cases import N_BACKGROUND, forest_predict, make_case, two_dimensional
from tests.truth.helpers import assert_close

NAMES = [
    "forest",
    "extra trees of two targets",
    "hist labelled",
    "xgboost of classes",
    "xgboost labelled",
    "lightgbm of classes",
    "lightgbm categorical",
    "lightgbm zero as missing",
]
SETTINGS = {
    "weights": (np.arange(N_BACKGROUND) % 5 / 2.0, None),
    "groups": (None, {"both": [0, 2]}),
}
EVERYTHING = pytest.mark.parametrize("setting", SETTINGS)
MODELS = pytest.mark.parametrize("name", NAMES)


@cache
def explainer_of(name, setting, output="component"):
    case, (weights, groups) = make_case(name), SETTINGS[setting]
    order = None if output == "component" else "auto"
    explainer = FastPDExplainer(output=output, max_order=order, groups=groups, n_jobs=1)
    return explainer.fit(case.model, case.background, sample_weight=weights)


def values_of(explanation):
    return explanation.values.reshape(len(explanation), len(explanation.terms), -1)


@EVERYTHING
@MODELS
def test_components_add_up_to_the_librarys_prediction(name, setting):
    case = make_case(name)
    explanation = explainer_of(name, setting).explain(case.explained)
    total = np.atleast_1d(explanation.base_values) + values_of(explanation).sum(axis=1)
    tolerance = 1e-5 if case.single else 1e-10
    truth = two_dimensional(case.respond, case.explained)
    assert_close(total, truth, case.reading.forest.scale(), tolerance)
    assert explanation.complete


@EVERYTHING
@MODELS
def test_marginal_identification(name, setting):
    """Equation 2 of Hiabu, Meyer & Wright: of all terms with some feature of S, over p_S."""
    case, (weights, groups) = make_case(name), SETTINGS[setting]
    explainer = explainer_of(name, setting)
    features = list(dict.fromkeys(feature for term in explainer.terms_ for feature in term))
    for names in list(oracles.subsets(range(len(features))))[1:]:
        S = {features[k] for k in names}
        moved = [j for feature in S for j in columns_of(case, groups, feature)]
        rows = oracles.hybrid_rows(case.explained[:3], case.background, moved)
        explanation = explainer.explain(rows)
        meets = [k for k, term in enumerate(explanation.terms) if S & set(term)]
        total = values_of(explanation)[:, meets].sum(axis=1)
        # Rows of the background, each with the other features of every explained row.
        mean = np.average(total.reshape(N_BACKGROUND, 3, -1), axis=0, weights=weights)
        assert_close(mean, np.zeros_like(mean), case.reading.forest.scale(), 1e-10)


def columns_of(case, groups, feature):
    if groups and feature in groups:
        return groups[feature]
    names = case.reading.input_map.names
    return [list(names).index(feature) if names else int(feature[1:])]


@EVERYTHING
@MODELS
def test_shap_values_are_shares_of_components(name, setting):
    """Corollary 2.7, against Shapley values by their own definition."""
    case, (weights, groups) = make_case(name), SETTINGS[setting]
    players = [[0, 2], [1], [3]] if groups else [[0], [1], [2], [3]]
    game = oracles.interventional_game(
        lambda rows: forest_predict(case, rows), case.background, weights, case.explained, players
    )
    truth = [oracles.shapley_interaction(game, (k,)) for k in range(len(players))]
    phi = explainer_of(name, setting).explain(case.explained).shap_values()
    phi = phi.reshape(*phi.shape[:2], -1)
    assert_close(phi, np.stack(truth, axis=1), case.reading.forest.scale())


def test_path_dependent_components_add_up():
    case = make_case("lightgbm categorical")
    explainer = PathDependentExplainer(output="component", max_order=None).fit(case.model)
    explanation = explainer.explain(case.explained)
    assert explanation.complete
    phi = PathDependentExplainer(output="shap").fit(case.model).transform(case.explained)
    assert_close(explanation.shap_values()[..., None], phi[..., None], case.reading.forest.scale())
    cut = explanation.select(order=1)
    total = cut.base_values + cut.sum() + cut.remainder
    assert_close(
        total[:, None], two_dimensional(case.respond, case.explained), case.reading.forest.scale()
    )
