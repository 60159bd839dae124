"""
What a model of wages says without sex: taken out, or left out
==============================================================

Wages are made up, so that the truth is known: women are paid 4 EUR an hour less than men of the
same kind, and they work fewer hours a week, for which nobody is paid less per hour. A model that is
fitted again without sex makes up for it by the hours, which tell the sexes apart, and goes on
paying women less. Sex averaged out of the fitted model leaves the hours as harmless as they are.
The script prints the gap that is left of each, and draws it to ``removal.png`` with the curve of
hours.

::

    python examples/plot_removal.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn.decomposition import FeatureRemover

PENALTY = 4.0
COLOURS = {
    "fitted with sex": "#AAAAAA",
    "sex averaged out": "#0072B2",
    "fitted without sex": "#D55E00",
}


def make_wages(n_rows: int = 6000) -> tuple[pd.DataFrame, np.ndarray]:
    """People, and what they earn in EUR an hour."""
    rng = np.random.default_rng(0)
    woman = rng.random(n_rows) < 0.5
    hours = np.clip(np.where(woman, rng.normal(30, 6, n_rows), rng.normal(40, 4, n_rows)), 12, 55)
    people = pd.DataFrame(
        {
            "sex": woman.astype(float),
            "hours": hours.round(),
            "experience": rng.uniform(0, 40, n_rows).round(),
            "schooling": rng.integers(9, 20, n_rows).astype(float),
        }
    )
    wage = 8 + 0.25 * people["experience"] + 0.9 * people["schooling"] - PENALTY * woman
    return people, wage + rng.normal(0, 2, n_rows)


def main() -> None:
    """Fit, remove, print and draw."""
    people, wage = make_wages()
    full = HistGradientBoostingRegressor(max_iter=120, max_leaf_nodes=15).fit(people, wage)
    removed = FeatureRemover(features=["sex"]).fit(full, people)
    fewer = people.drop(columns="sex")
    refitted = HistGradientBoostingRegressor(max_iter=120, max_leaf_nodes=15).fit(fewer, wage)
    answers = {
        "fitted with sex": full.predict,
        "sex averaged out": removed.predict,
        "fitted without sex": lambda rows: refitted.predict(rows.drop(columns="sex")),
    }
    gaps = print_gaps(answers, people)
    draw(answers, gaps, people)


def print_gaps(answers, people) -> dict[str, float]:
    """Mean prediction for men less that for women."""
    woman = people["sex"] == 1
    gaps = {}
    print("predicted wage of men less that of women [EUR/h]; they differ in hours and sex alone")
    for name, predict in answers.items():
        predicted = predict(people)
        gaps[name] = predicted[~woman].mean() - predicted[woman].mean()
        print(f"{name:20s} {gaps[name]:6.2f}")
    return gaps


def draw(answers, gaps, people) -> None:
    """The gaps, and the mean prediction by hours of work."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    names = list(gaps)[::-1]
    bars = left.barh(names, [gaps[name] for name in names], color=[COLOURS[n] for n in names])
    left.bar_label(bars, fmt="%.2f", padding=4)
    left.set_xlim(-0.3, 1.2 * max(gaps.values()))
    left.axvline(0, color="black", linewidth=0.8)
    left.set_xlabel("men less women, mean prediction [EUR/h]")
    left.set_title("The gap that is left", loc="left")
    grid = np.arange(20, 49)
    for name, predict in answers.items():
        curve = [predict(people.assign(hours=float(hours))).mean() for hours in grid]
        # The first two are nearly the same: the narrow line lies on the wide one.
        width = 6 if name == "fitted with sex" else 2
        right.plot(grid, curve, color=COLOURS[name], linewidth=width, label=name)
    right.set_xlabel("hours of work a week")
    right.set_ylabel("mean prediction [EUR/h]")
    right.set_title("What hours of work do (in truth nothing)", loc="left")
    right.legend(frameon=False)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig("removal.png", dpi=130)
    print("\ndrawn to removal.png")


if __name__ == "__main__":
    main()
