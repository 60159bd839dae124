"""Importances that were found already are drawn as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn.decomposition import importance
from fastpd_sklearn.display import ImportanceDisplay


def widths(bars):
    return np.array([bar.get_width() for bar in bars])


@pytest.fixture(scope="module")
def found(model, X):
    return importance(model, X)


def test_features_are_made_of_orders(found):
    display = ImportanceDisplay.from_importance(found)
    order = np.argsort(-found.feature_importances)
    assert display.names_ == [found.feature_names[k] for k in order]
    for n, bars in enumerate(display.bars_):
        assert_allclose(widths(bars), found.feature_order_importances[order, n])
    assert_allclose(display.marks_.get_xdata(), found.shap_importances[order])
    assert_allclose(display.marks_.get_ydata(), np.arange(4))
    (legend,) = display.figure_.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[:2] == ["main effects", "2-way interactions"]
    assert labels[-1] == "mean |SHAP value|"
    label = "mean |component|, shared by its features, in units of the response"
    assert display.ax_.get_xlabel() == label


def test_few_bars(found):
    display = ImportanceDisplay.from_importance(found, max_bars=2)
    order = np.argsort(-found.feature_importances)
    assert display.names_ == [found.feature_names[order[0]], "3 others"]
    total = sum(widths(bars) for bars in display.bars_)
    assert_allclose(total.sum(), found.feature_importances.sum())
    assert_allclose(display.marks_.get_xdata()[1], found.shap_importances[order[1:]].sum())


def test_what_larger_sets_amount_to(model, X):
    found = importance(model, X, max_order=2)
    assert found.remainder_importance > 0
    for by in ("feature", "term", "order"):
        display = ImportanceDisplay.from_importance(found, by=by, max_bars=99)
        assert display.names_[-1] == "larger sets, together"
        assert_allclose(widths(display.bars_[-1])[-1], found.remainder_importance)
        assert sum(widths(bars)[-1] for bars in display.bars_) == widths(display.bars_[-1])[-1]


@pytest.mark.parametrize("by", ["term", "order"])
def test_terms_and_orders_are_those_of_the_explainer(model, X, found, by):
    one = ImportanceDisplay.from_importance(found, by=by)
    other = ImportanceDisplay.from_estimator(model, X, by=by, max_order=None)
    assert one.names_ == other.names_
    assert_allclose(one.importances, other.importances)
    assert one.marks_ is None


def test_classes_are_parts_of_bars(classifier, X):
    found = importance(classifier, X)
    display = ImportanceDisplay.from_importance(found)
    order = np.argsort(-found.feature_importances.sum(axis=1))
    for k, bars in enumerate(display.bars_):
        assert_allclose(widths(bars), found.feature_importances[order, k])
    assert_allclose(display.marks_.get_xdata(), found.shap_importances.sum(axis=1)[order])
    cut = importance(classifier, X, max_order=1)
    display = ImportanceDisplay.from_importance(cut)
    rest = [widths(bars)[-1] for bars in display.bars_]
    assert_allclose(rest, cut.remainder_importance)


def test_bars_of_what(found):
    with pytest.raises(ValueError, match="by='row' is none of"):
        ImportanceDisplay.from_importance(found, by="row")
    with pytest.raises(TypeError, match=r"got a ndarray; HStatistics .* to_frame"):
        ImportanceDisplay.from_importance(found.term_importances)
