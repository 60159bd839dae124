"""
Explain an XGBoost model of the diabetes data, exactly
======================================================

Ten measurements of 442 patients predict how far their diabetes has progressed a year later.
The script fits 200 trees, explains them over all patients, prints what it finds and draws the
partial dependence on the strongest measurements to ``quickstart.png``.

::

    python examples/quickstart.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from xgboost import XGBRegressor

from fastpd_sklearn import FastPDExplainer

MEANING = {
    "age": ("age", "years"),
    "sex": ("sex", "code"),
    "bmi": ("body mass index", "kg/m²"),
    "bp": ("mean blood pressure", "mmHg"),
    "s1": ("total cholesterol", "mg/dl"),
    "s2": ("LDL cholesterol", "mg/dl"),
    "s3": ("HDL cholesterol", "mg/dl"),
    "s4": ("total / HDL cholesterol", "ratio"),
    "s5": ("log of triglycerides", "log mg/dl"),
    "s6": ("blood sugar", "mg/dl"),
}


def main() -> None:
    """Fit, explain, print and draw."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = XGBRegressor(n_estimators=200, max_depth=3, learning_rate=0.05, random_state=0)
    model.fit(X, y)

    # The whole training set is the background: the cost is linear in it.
    shap = FastPDExplainer(output="shap").fit(model, X)
    components = FastPDExplainer(output="component", max_order=2).fit(model, X)
    curves = FastPDExplainer(output="pd").fit(model, X)

    importance = print_features(shap.explain(X), X)
    print_interactions(components.explain(X))
    print_additivity(shap, model, X)
    draw(curves, X, [name for name in importance if X[name].nunique() > 10])


def print_features(explanation, X) -> list[str]:
    """A table of features by mean |SHAP|; their names in that order."""
    size = np.abs(explanation.values).mean(axis=0)
    order = np.argsort(-size)
    names = [explanation.feature_names[k] for k in order]
    print(f"Mean prediction over {len(X)} patients: {explanation.base_values:.1f}\n")
    print(f"{'feature':<26}{'mean |SHAP|':>12}{'correlation of value and SHAP':>32}")
    for name in names:
        if explanation[name].any():
            sign = np.corrcoef(X[name], explanation[name])[0, 1]
            size = np.abs(explanation[name]).mean()
            print(f"{MEANING[name][0]:<26}{size:>12.2f}{sign:>+32.2f}")
    return names


def print_interactions(explanation, n_shown: int = 5) -> None:
    """The pairs with the largest joint effect beyond their own ones."""
    pairs = [term for term in explanation.terms if len(term) == 2]
    size = {pair: np.std(explanation[pair]) for pair in pairs}
    print(f"\n{'strongest of ' + str(len(pairs)) + ' interactions':<50}{'std':>8}")
    for pair in sorted(pairs, key=size.get, reverse=True)[:n_shown]:
        print(f"{' x '.join(MEANING[name][0] for name in pair):<50}{size[pair]:>8.2f}")


def print_additivity(explainer, model, X) -> None:
    """How well intercept and SHAP values add up to XGBoost's own predictions."""
    total = explainer.intercept_[0] + explainer.transform(X).sum(axis=1)
    error = np.abs(total - model.predict(X)).max()
    print(f"\nintercept + SHAP values = prediction, up to {error:.1e} (XGBoost adds in float32)")


def draw(explainer, X, names) -> None:
    """Exact curves of three measurements, and the joint effect of the first two."""
    figure, axes = plt.subplots(1, 4, figsize=(11.5, 3.1), layout="constrained")
    for axis, name in zip(axes, names[:3], strict=False):
        draw_curve(axis, explainer, X, name)
        axis.sharey(axes[0])
    axes[0].set_ylabel("mean predicted progression")
    axes[0].text(0.03, explainer.intercept_[0] + 2, "mean of all", color="0.35", fontsize=9,
                 transform=axes[0].get_yaxis_transform())  # fmt: skip
    image = draw_interaction(axes[3], explainer, X, names[0], names[1])
    figure.colorbar(image, ax=axes[3], label="joint effect beyond both")
    figure.savefig("quickstart.png", dpi=110)
    print("\nThe partial dependence on the strongest three is drawn in quickstart.png")


def draw_curve(axis, explainer, X, name: str) -> None:
    """The curve with all its steps, and the patients as a rug below."""
    curve = explainer.partial_dependence(name).curve
    low, high = X[name].min(), X[name].max()
    breaks = curve.breaks[(curve.breaks > low) & (curve.breaks < high)]
    edges = np.concatenate([[low], breaks, [high]])
    # A piece's level is the curve's value in its middle: there is no grid to choose.
    levels = curve((edges[1:] + edges[:-1]) / 2)[0]
    axis.stairs(levels, edges, baseline=None, color="#0072B2", linewidth=2)
    axis.axhline(explainer.intercept_[0], color="0.5", linestyle="--", linewidth=1, zorder=0)
    axis.plot(X[name], np.full(len(X), 0.03), "|", color="0.3", alpha=0.35, markersize=7,
              transform=axis.get_xaxis_transform())  # fmt: skip
    axis.set_xlabel(label(name))
    axis.spines[["top", "right"]].set_visible(False)


def draw_interaction(axis, explainer, X, first: str, second: str):
    """What a pair adds to the sum of its two curves, with the patients as dots."""
    grids = [np.linspace(X[name].min(), X[name].max(), 80) for name in (first, second)]
    pair = explainer.partial_dependence((first, second), grid=grids).average[0]
    alone = explainer.partial_dependence(first, grid=grids[0]).average[0]
    other = explainer.partial_dependence(second, grid=grids[1]).average[0]
    effect = pair - alone[:, None] - other[None, :] + explainer.intercept_[0]
    largest = np.abs(effect).max()
    image = axis.pcolormesh(*grids, effect.T, cmap="PuOr_r", vmin=-largest, vmax=largest)
    axis.plot(X[first], X[second], ".", color="0.15", alpha=0.35, markersize=2)
    axis.set_xlabel(label(first))
    axis.set_ylabel(label(second))
    return image


def label(name: str) -> str:
    """Name and unit of a measurement."""
    return "{} [{}]".format(*MEANING[name])


if __name__ == "__main__":
    main()
