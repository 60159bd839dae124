"""
Explain a whole pipeline on the columns that people know
========================================================

Wages of 2000 made-up employees depend on age, hours, education, occupation and region. Gaps are
imputed, numbers are scaled, words become dummies or codes, and gradient boosting does the rest.
The script explains the pipeline as it is: importance of the occupation and not of its dummies,
and partial dependence over years and hours and not over standard deviations. It prints what it
finds and draws it to ``raw_columns.png``.

::

    python examples/raw_columns.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from fastpd_sklearn import FastPDExplainer

OCCUPATIONS = {"cook": -4.0, "clerk": -2.0, "teacher": 1.0, "nurse": 2.0, "engineer": 7.0}
EDUCATION = ["school", "college", "university"]


def main() -> None:
    """Make data, fit, explain, print and draw."""
    X, wage = make_wages()
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    preprocess = make_column_transformer(
        (numbers, ["age", "hours"]),
        (OneHotEncoder(), ["occupation", "region"]),
        (OrdinalEncoder(categories=[EDUCATION]), ["education"]),
    )
    trees = GradientBoostingRegressor(n_estimators=100, max_depth=3, random_state=0)
    pipe = make_pipeline(preprocess, trees).fit(X, wage)

    shap = FastPDExplainer(output="shap").fit(pipe, X)
    phi = shap.explain(X)
    size = pd.Series(np.abs(phi.values).mean(axis=0), phi.feature_names).sort_values()
    print(
        f"{pipe[0].transform(X).shape[1]} columns go into the trees, {X.shape[1]} into the pipe\n"
    )
    print(f"{'column':<12}{'mean |SHAP|':>12}")
    for name, value in size[::-1].items():
        print(f"{name:<12}{value:>12.2f}")
    error = np.abs(shap.intercept_ + phi.values.sum(axis=1) - pipe.predict(X)).max()
    print(f"\nMean wage + SHAP values = prediction, up to {error:.1e}")

    curves = FastPDExplainer().fit(pipe, X)
    age = curves.partial_dependence("age")
    print(f"Of an unknown age the pipeline expects {age.curve.missing[0]:.2f}")
    draw(size, curves, X)


def make_wages(n_rows: int = 2000):
    """Employees and what they earn an hour."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 67, n_rows).astype(float),
            "hours": rng.integers(8, 50, n_rows),
            "education": rng.choice(EDUCATION, n_rows, p=[0.4, 0.35, 0.25]),
            "occupation": rng.choice(list(OCCUPATIONS), n_rows),
            "region": rng.choice(["north", "south", "east", "west"], n_rows),
        }
    )
    degree = X["education"].map(EDUCATION.index)
    career = 6.0 * (1 - np.exp(-(X["age"] - 18) / 12)) * (1 + degree) / 2
    wage = 18 + career + X["occupation"].map(OCCUPATIONS) + 0.05 * X["hours"]
    wage += 1.5 * (X["region"] == "south") + rng.normal(scale=2.0, size=n_rows)
    X.loc[rng.random(n_rows) < 0.08, "age"] = np.nan
    return X, wage.to_numpy()


def draw(size: pd.Series, curves: FastPDExplainer, X: pd.DataFrame) -> None:
    """Importance, the curve of the age and the levels of the occupation."""
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1, 1.3, 1.2]
    )
    left.barh(size.index, size, color="#0072B2")
    left.set(title="Importance of raw columns", xlabel="mean |SHAP|, euros an hour")

    curve = curves.partial_dependence("age").curve
    edges = np.concatenate([[X["age"].min()], curve.breaks, [X["age"].max()]])
    middle.stairs(curve.levels[0], edges, baseline=None, color="#0072B2", linewidth=1.8)
    middle.axhline(curve.missing[0], color="#D55E00", linestyle="--", linewidth=1)
    middle.annotate(
        "age unknown",
        (X["age"].max(), curve.missing[0]),
        xytext=(0, -4),
        textcoords="offset points",
        color="#D55E00",
        ha="right",
        va="top",
    )
    middle.set(title="Age: every step of the curve", xlabel="years", ylabel="wage, euros an hour")

    result = curves.partial_dependence("occupation")
    order = np.argsort(result.average[0])
    right.plot(result.average[0][order], result.grid_values[0][order], "o", color="#0072B2")
    right.axvline(curves.intercept_[0], color="0.6", linewidth=1, zorder=0)
    right.annotate(
        "mean",
        (curves.intercept_[0], 1),
        xycoords=("data", "axes fraction"),
        xytext=(4, -4),
        textcoords="offset points",
        color="0.4",
        va="top",
    )
    right.set(title="Occupation, five dummies in one", xlabel="wage, euros an hour")
    right.margins(y=0.15)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig("raw_columns.png", dpi=150)


if __name__ == "__main__":
    main()
