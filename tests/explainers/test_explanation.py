"""What `explain` gives, and what it becomes elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer
from fastpd_sklearn.explainers import Explanation

# Models that were fitted on arrays warn when they predict frames.
pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")


def test_shapes(explainer_class, model, classifier, X):
    one = explainer_class(output="shap").fit(model, X).explain(X)
    assert isinstance(one, Explanation)
    assert one.values.shape == (30, 4)
    assert np.ndim(one.base_values) == 0
    assert one.remainder.shape == (30,)
    assert len(one) == 30
    several = explainer_class(output="shap").fit(classifier, X).explain(X)
    assert several.values.shape == (30, 4, 3)
    assert several.base_values.shape == (3,)
    assert several.remainder.shape == (30, 3)
    assert several.output_names == ("high", "low", "mid")
    assert several.feature_names == ("x0", "x1", "x2", "x3")
    assert several.data is X


@pytest.mark.parametrize("output", ["shap", "shap_interaction", "component"])
def test_values_add_up(explainer_class, model, X, output):
    order = None if output == "component" else "auto"
    explanation = explainer_class(output=output, max_order=order).fit(model, X).explain(X)
    twice = [2 if output == "shap_interaction" and len(T) == 2 else 1 for T in explanation.terms]
    total = explanation.base_values + explanation.values @ twice
    assert_allclose(total, model.predict(X), atol=1e-10)
    assert_allclose(explanation.remainder, 0.0, atol=1e-10)
    assert explanation.complete


def test_remainder_is_what_is_left_out(explainer_class, model, X):
    explanation = explainer_class(output="shap", features=[1, 2]).fit(model, X).explain(X)
    whole = explainer_class(output="shap").fit(model, X).explain(X)
    assert_allclose(explanation.remainder, whole["x0"] + whole["x3"], atol=1e-10)
    assert not explanation.complete


@pytest.mark.parametrize("output", ["pd", "banzhaf", "total"])
def test_outputs_that_do_not_add_up(explainer_class, model, X, output):
    explanation = explainer_class(output=output).fit(model, X).explain(X)
    assert explanation.remainder is None
    pytest.importorskip("shap")
    with pytest.raises(ValueError, match=f"output='{output}' has no SHAP values in it"):
        explanation.to_shap()


def test_columns_of_features(explainer_class, model, X):
    explanation = explainer_class(groups={"g": [0, 2]}).fit(model, X).explain(X)
    assert explanation.feature_names == ("g", "x1", "x3")
    assert explanation.columns == ((0, 2), (1,), (3,))


def test_terms_by_name(explainer_class, model, X):
    explanation = explainer_class(output="component", features=[2, (0, 1)]).fit(model, X).explain(X)
    assert_allclose(explanation["x2"], explanation.values[:, 0])
    assert_allclose(explanation["x1", "x0"], explanation.values[:, 1])
    with pytest.raises(KeyError, match=r"'x3' is not among the 2 terms .*: x2, x0:x1"):
        explanation["x3"]


def test_unknown_term_among_many():
    background = np.eye(8)[:3]
    model = LinearRegression().fit(background, [0.0, 1.0, 2.0])
    explanation = VanillaPDExplainer(output="component").fit(model, background).explain(background)
    with pytest.raises(KeyError, match="among the 36 terms") as caught:
        explanation["nope"]
    assert str(caught.value).count(", ") == 20
    assert "x1:x6, ..." in str(caught.value)


@pytest.mark.parametrize("rows", [slice(0, 2), 0, np.array([0])], ids=repr)
def test_rows_are_no_terms(model, X, rows):
    explanation = VanillaPDExplainer().fit(model, X).explain(X[:3])
    with pytest.raises(TypeError, match=r"not by rows, got .* slice explanation\.values"):
        explanation[rows]


def test_to_frame(explainer_class, classifier, X):
    pd = pytest.importorskip("pandas")
    explanation = explainer_class(output="shap", features=[0, 2]).fit(classifier, X).explain(X[:4])
    frame = explanation.to_frame()
    assert list(frame.columns) == ["row", "term", "output", "value"]
    assert len(frame) == 4 * 2 * 3
    line = frame[(frame.row == 3) & (frame.term == "x2") & (frame.output == "low")]
    assert_allclose(line.value, explanation.values[3, 1, 1])
    rows = pd.DataFrame(X[:4], index=list("wxyz"))
    indexed = explainer_class().fit(classifier, pd.DataFrame(X)).explain(rows).to_frame()
    assert indexed.row.unique().tolist() == list("wxyz")


def test_to_shap(explainer_class, model, X):
    shap = pytest.importorskip("shap")
    explainer = explainer_class(output="shap").fit(model, X)
    ours = explainer.explain(X).to_shap()
    assert isinstance(ours, shap.Explanation)
    assert_allclose(ours.values, explainer.transform(X))
    assert_allclose(ours.base_values, np.full(30, explainer.intercept_[0]))
    assert_allclose(ours.data, X)
    assert ours.feature_names == ["x0", "x1", "x2", "x3"]


def test_to_shap_of_several_outputs(explainer_class, classifier, X, frame):
    pytest.importorskip("shap")
    data = frame(X, list("abcd"))
    ours = explainer_class(output="shap").fit(classifier, data).explain(data).to_shap()
    assert ours.values.shape == (30, 4, 3)
    assert ours.base_values.shape == (30, 3)
    assert_allclose(ours.data, X)


def test_interactions_to_shap(explainer_class, model, X):
    pytest.importorskip("shap")
    explanation = explainer_class(output="shap_interaction").fit(model, X).explain(X)
    matrix = explanation.to_shap().values
    phi = explainer_class(output="shap").fit(model, X).transform(X)
    assert_allclose(matrix, matrix.transpose(0, 2, 1))
    assert_allclose(matrix.sum(axis=2), phi, atol=1e-12)


def test_components_become_shap(explainer_class, model, X):
    pytest.importorskip("shap")
    explanation = explainer_class(output="component", max_order=None).fit(model, X).explain(X)
    phi = explainer_class(output="shap").fit(model, X).transform(X)
    assert_allclose(explanation.to_shap().values, phi, atol=1e-12)


def test_truncated_components_never_pass_as_shap(explainer_class, model, X):
    pytest.importorskip("shap")
    explanation = explainer_class(output="component", max_order=2).fit(model, X).explain(X)
    with pytest.raises(ValueError, match=r"were left out .* max_order=None"):
        explanation.to_shap()


def test_components_are_complete_if_what_is_left_out_is_zero(X, y):
    pytest.importorskip("shap")
    model = LinearRegression().fit(X, y)
    explanation = VanillaPDExplainer(output="component").fit(model, X).explain(X)
    assert explanation.complete
    shap = VanillaPDExplainer(output="shap").fit(model, X).transform(X)
    assert_allclose(explanation.to_shap().values, shap, atol=1e-12)


def test_terms_that_cancel_are_not_zero():
    """The remainder of the one row is 0, yet both features that are left out matter."""

    class Difference:
        def predict(self, X):
            return X[:, 0] + X[:, 1] - X[:, 2]

    background = np.zeros((2, 3))
    explainer = VanillaPDExplainer(output="shap", features=[0]).fit(Difference(), background)
    explanation = explainer.explain(np.ones((1, 3)))
    assert_allclose(explanation.remainder, 0.0)
    assert not explanation.complete


def test_groups_to_shap(explainer_class, model, X):
    pytest.importorskip("shap")
    explainer = explainer_class(output="shap", groups={"g": [0, 1]}).fit(model, X)
    ours = explainer.explain(X).to_shap()
    assert ours.feature_names == ["g", "x2", "x3"]
    assert np.isnan(ours.data[:, 0]).all()
    assert_allclose(ours.data[:, 1:], X[:, 2:])
    assert_allclose(ours.display_data[:, 1:].astype(float), X[:, 2:])
    assert ours.display_data[0, 0] == f"({X[0, 0]:g}, {X[0, 1]:g})"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("output", ["shap", "shap_interaction", "pd"])
def test_out(explainer_class, model, X, dtype, output, tmp_path):
    explainer = explainer_class(output=output).fit(model, X)
    expected = explainer.transform(X)
    out = np.memmap(tmp_path / "values", dtype, "w+", shape=expected.shape)
    explanation = explainer.explain(X, out=out)
    assert_allclose(out, expected, rtol=1e-6 if dtype == np.float32 else 0, atol=1e-6)
    assert np.shares_memory(explanation.values, out)


def layouts(shape):
    """Arrays to write to: rows side by side or values of a row, with gaps, and unaligned."""
    spaced = np.empty((2 * shape[0], shape[1] + 3, *shape[2:]))
    packed = np.empty(shape, [("tag", "i1"), ("value", "f8")])
    return {
        "rows": np.empty(shape),
        "terms": np.empty(shape, order="F"),
        "single": np.empty(shape, np.float32, order="F"),
        "gaps": spaced[::2, 3:],
        "upside down": np.empty(shape, np.float32)[::-1],
        "packed": packed["value"],
    }


@pytest.mark.parametrize("layout", layouts((1, 1)))
@pytest.mark.parametrize("output", ["pd", "component"])
def test_out_of_any_layout(model, classifier, X, output, layout):
    """Against the definition; there are several outputs, and a column that no tree tests."""
    wide = np.column_stack([X, np.ones(len(X))])
    regressor = clone(model).fit(wide, X[:, 0] * X[:, 1])
    several = clone(classifier).fit(wide, np.digitize(X[:, 1], [0.7, 1.6]))
    for fitted, predict in ((regressor, regressor.predict), (several, several.predict_proba)):
        kept = {"output": output, "max_order": 1 if output == "pd" else 2}
        truth = VanillaPDExplainer(**kept).fit(fitted, wide)
        explainer = FastPDExplainer(**kept, features=list(truth.terms_)).fit(fitted, wide)
        expected = truth.explain(wide).values
        out = layouts(expected.shape)[layout]
        explanation = explainer.explain(wide, out=out)
        assert np.shares_memory(explanation.values, out)
        single = out.dtype == np.float32
        assert_allclose(out, expected, rtol=0, atol=1e-6 if single else 1e-12)
        if output == "component":
            total = explanation.base_values + out.sum(axis=1) + explanation.remainder
            assert_allclose(total, predict(wide), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((3, 2)), ValueError, "expected"),
        (np.empty((3, 2), int), TypeError, "float64 or float32"),
        ("here", TypeError, "array of float64"),
    ],
    ids=["shape", "dtype", "type"],
)
def test_out_that_does_not_fit(explainer_class, model, X, out, error, message):
    explainer = explainer_class(output="shap").fit(model, X)
    with pytest.raises(error, match=message):
        explainer.explain(X, out=out)


def test_single_precision_values_are_complete(explainer_class, model, X):
    explainer = explainer_class(output="shap").fit(model, X)
    out = np.empty((len(X), 4), np.float32)
    assert explainer.explain(X, out=out).complete
