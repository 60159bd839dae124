"""scikit-learn's own checks of an estimator, around every kind of model that a fit may meet."""

from unittest import SkipTest

import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from xgboost import XGBRegressor

from fastpd_sklearn import ALEExplainer, ICEExplainer
from tests.explainers.conftest import EXPLAINERS

pytestmark = [
    # XGBoost and scikit-learn warn about odd sparse formats and names that the checks leave out.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(
        tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
        reason="scikit-learn 1.9 checks more, and its forests draw their samples by weight",
    ),
]

MODELS = [
    DecisionTreeRegressor(max_depth=2, random_state=0),
    HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=4, min_samples_leaf=1),
    RandomForestRegressor(n_estimators=2, max_depth=2, random_state=0),
    XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1),
]
CHECKED = [
    explainer(model, n_jobs=1)
    for explainer in (*EXPLAINERS, ALEExplainer, ICEExplainer)
    for model in MODELS
]

DRAWS = (
    "a forest draws its bootstrap samples by weight, so that a row of weight 2 is not the same as "
    "two rows; scikit-learn expects its own RandomForestRegressor to fail here too"
)
EQUIVALENCE = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]

ROUNDING = (
    "histogram boosting keeps gradients in float32: its fits with weights and with repeated rows "
    "differ by 2e-9, and the check allows values of zero 1e-9"
)


def expected_failures(explainer):
    if getattr(explainer.estimator, "bootstrap", False):
        return dict.fromkeys(EQUIVALENCE, DRAWS)
    is_histogram = isinstance(explainer.estimator, HistGradientBoostingRegressor)
    if isinstance(explainer, ALEExplainer) and is_histogram:
        return {EQUIVALENCE[0]: ROUNDING}
    return {}


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_common_checks(estimator, check, monkeypatch):
    # The check of arrays under array API dispatch is skipped without this.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.fail(f"skipped: {skipped}")


@pytest.mark.parametrize("explainer", CHECKED, ids=lambda e: repr(e)[:60])
def test_no_check_is_left_out(explainer):
    checks = list(estimator_checks_generator(explainer))
    # Models that take no sparse matrices are spared one check of them.
    assert len(checks) >= 55 - (not get_tags(explainer).input_tags.sparse)
