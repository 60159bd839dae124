"""
Partial dependence by the lines of sklearn.inspection, exactly and with all steps
=================================================================================

A gradient boosting of the diabetes data with what data have in practice: whole numbers, labels and
missing values. The script draws ``inspection.png`` with two lines of code, and then prints where
scikit-learn's own ``partial_dependence`` agrees, how long it takes, and where it does not agree.

::

    python examples/inspection.py
"""

import time

import matplotlib

matplotlib.use("Agg")

import numpy as np
import sklearn.inspection
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn.inspection import PartialDependenceDisplay, partial_dependence

FEATURES = ["bmi", "s5", "bp", "age", "sex", ("bmi", "s5")]


def main() -> None:
    """Fit, draw and compare."""
    X, y = load_data()
    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype", max_iter=60, learning_rate=0.1, random_state=0
    ).fit(X, y)

    display = PartialDependenceDisplay.from_estimator(model, X, FEATURES, grid_resolution="exact")
    display.figure_.savefig("inspection.png", dpi=110)

    compare(model, X, "bmi")
    print(f"\nmean progression where blood pressure is missing: {at_missing(model, X, 'bp'):.1f}")
    print("The partial dependence on all of them is drawn in inspection.png")


def load_data():
    """Patients as a frame with labels, whole numbers and missing values."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X["age"] = X["age"].astype(int)
    X["sex"] = X["sex"].map({1.0: "female", 2.0: "male"}).astype("category")
    X.loc[np.random.default_rng(0).random(len(X)) < 0.15, "bp"] = np.nan
    return X, y


def compare(model, X, name: str) -> None:
    """A table of ways to compute one curve of 100 points."""
    theirs = X.astype({"age": float})  # scikit-learn refuses whole numbers
    ways = {
        "fastpd_sklearn, method='auto'": (partial_dependence, X, "auto"),
        "scikit-learn, method='brute'": (sklearn.inspection.partial_dependence, theirs, "brute"),
        "scikit-learn, method='auto'": (sklearn.inspection.partial_dependence, theirs, "auto"),
    }
    print(f"partial dependence on {name:<14}{'seconds':>9}{'lowest':>9}{'highest':>9}")
    for label, (function, rows, method) in ways.items():
        start = time.perf_counter()
        curve = function(model, rows, [name], method=method).average[0]
        seconds = time.perf_counter() - start
        print(f"{label:<36}{seconds:>9.3f}{curve.min():>9.1f}{curve.max():>9.1f}")


def at_missing(model, X, name: str) -> float:
    """Mean prediction where a column is missing: a part of the exact curve."""
    return partial_dependence(model, X, name, grid_resolution="exact").curve.missing[0]


if __name__ == "__main__":
    main()
