"""
See what hyperparameters do to a model, not only to its score
=============================================================

A grid search over XGBoost's depth and learning rate on the diabetes data. Besides the score it
notes, on every fold, how much of the variance interactions carry, how far the dependence on the
body mass index is from an increasing one, and how much of the variance hangs on age and sex.
Then the curves of all candidates are drawn, coloured by score and by depth, to
``grid_search.png``.

::

    python examples/plot_grid_search.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from xgboost import XGBRegressor

from fastpd_sklearn.display import CandidateCurvesDisplay
from fastpd_sklearn.model_selection import (
    candidate_curves,
    feature_influence_scorer,
    interaction_share_scorer,
    monotonicity_violation_scorer,
)

SCORING = {
    "r2": "r2",
    "interactions": interaction_share_scorer(),
    "bmi falls": monotonicity_violation_scorer("bmi", "increasing", measure="variance"),
    "age and sex": feature_influence_scorer(["age", "sex"]),
}


def main() -> None:
    """Search, print and draw."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    search = GridSearchCV(
        XGBRegressor(n_estimators=50, random_state=0, n_jobs=1),
        {"max_depth": [1, 3, 5], "learning_rate": [0.1, 0.5]},
        scoring=SCORING,
        refit="r2",
        cv=3,
    ).fit(X, y)
    print_candidates(search)

    curves = candidate_curves(search, X, y, ["bmi", "s5", "age"])
    print_curves(curves)
    draw(curves)


def print_candidates(search) -> None:
    """A table of the means over the folds; the measures are shares of a variance."""
    results = search.cv_results_
    names = list(search.cv_results_["params"][0])
    print("".join(f"{name:>14}" for name in [*names, *SCORING]))
    for row in np.argsort(results["rank_test_r2"], kind="stable"):
        params = [results["params"][row][name] for name in names]
        means = [abs(results[f"mean_test_{name}"][row]) for name in SCORING]
        print("".join(f"{value:>14g}" for value in params), end="")
        print("".join(f"{value:>14.3f}" for value in means))


def print_curves(curves) -> None:
    """How far apart the candidates' curves are, where each is the mean over all patients."""
    print("\nrange of the partial dependence, from the flattest candidate to the steepest")
    for name, average in zip(curves.features, curves.average, strict=True):
        height = np.ptp(average[:, 0, 0], axis=1)
        print(f"{name:>14}{height.min():>14.1f}{height.max():>14.1f}")


def draw(curves) -> None:
    """All candidates by score, and once more by depth."""
    figure = plt.figure(figsize=(10.5, 6.8), layout="constrained")
    above, below = figure.subfigures(2, 1)
    for part, color_by in [(above, "score"), (below, "max_depth")]:
        axes = part.subplots(1, len(curves.features))
        CandidateCurvesDisplay(curves).plot(color_by=color_by, ax=axes)
    figure.savefig("grid_search.png", dpi=110)
    print("\nThe curves of all candidates are drawn in grid_search.png")


if __name__ == "__main__":
    main()
