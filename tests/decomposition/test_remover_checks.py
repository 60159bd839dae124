"""scikit-learn's own checks of an estimator, around every kind of model that is read or called."""

from unittest import SkipTest

import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from xgboost import XGBRegressor

from fastpd_sklearn.decomposition import FeatureRemover
from tests.versions import older

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(
        older("scikit-learn", "1.9"),
        reason="scikit-learn 1.9 checks more, and its forests draw their samples by weight",
    ),
]

CHECKED = [
    FeatureRemover(DecisionTreeRegressor(max_depth=2, random_state=0), features=[0], n_jobs=1),
    FeatureRemover(XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1), features=[0], n_jobs=1),
    FeatureRemover(RandomForestClassifier(5, random_state=0), n_jobs=1),
    FeatureRemover(
        HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=2), scale="response", n_jobs=1
    ),
    FeatureRemover(Ridge(), features=[0]),
]

EQUIVALENCE = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]


def expected_failures(remover):
    if getattr(remover.estimator, "bootstrap", False):
        return dict.fromkeys(EQUIVALENCE, "a forest draws its samples by weight")
    if isinstance(remover.estimator, HistGradientBoostingClassifier):
        return {EQUIVALENCE[0]: "leaves are limited by rows, not by their weight"}
    return {}


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_common_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.fail(f"skipped: {skipped}")


@pytest.mark.parametrize("remover", CHECKED, ids=lambda e: repr(e.estimator)[:40])
def test_no_check_is_left_out(remover):
    assert len(list(estimator_checks_generator(remover))) >= 58
