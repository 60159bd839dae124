"""
Main effects or interactions?
=============================

An invented city rents out bicycles. On workdays people ride to work, at weekends they ride when it
is warm; humidity and wind matter a little, and the temperature falls where humidity rises. A
gradient boosting model learns the number of bicycles, and its functional decomposition says which
features matter by themselves, which with others, and which pairs interact. All numbers are exact,
over all rows.

::

    python examples/plot_decomposition.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn.decomposition import h_statistic, importance
from fastpd_sklearn.display import ImportanceDisplay

N_ROWS = 5_000


def main() -> None:
    """Fit, print what matters, and draw it."""
    X, y = rented_bicycles(np.random.default_rng(0))
    model = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=10, random_state=0)
    model.fit(X, y)

    found = importance(model, X)
    print("Strongest terms (mean |component|, and share of the variance):")
    print(found.to_frame().head(8).round(3).to_string(index=False), "\n")
    print("Orders (sum of mean |component|, mean |sum of components|, and share of the variance):")
    print(found.to_frame("order").round(3).to_string(index=False), "\n")
    print("Features (by components, in which nothing cancels, and by SHAP values):")
    print(found.to_frame("feature").round(3).to_string(index=False), "\n")

    pairs = h_statistic(model, X)
    print("Pairs by H, which is relative to what the two features do:")
    print(pairs.to_frame().round(3).to_string(index=False))

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    ImportanceDisplay.from_importance(found, ax=left)
    left.set_title("Features: main effects and interactions", loc="left")
    draw_pairs(right, pairs)
    figure.savefig("plot_decomposition.png", dpi=120)
    print("\nplot_decomposition.png")


def rented_bicycles(rng):
    """Hours, and how many bicycles were rented in each of them."""
    hour = rng.integers(0, 24, N_ROWS)
    workday = (rng.random(N_ROWS) < 5 / 7).astype(int)
    humidity = rng.uniform(30, 100, N_ROWS)
    temperature = 25 - 0.15 * (humidity - 65) + rng.normal(0, 6, N_ROWS)
    wind = rng.gamma(2.0, 6.0, N_ROWS)
    commute = np.exp(-((hour - 8) ** 2) / 3) + np.exp(-((hour - 17) ** 2) / 5)
    leisure = np.exp(-((hour - 14) ** 2) / 20) * np.clip(temperature - 5, 0, None) / 20
    mean = 40 + 250 * workday * commute + 200 * (1 - workday) * leisure - 0.5 * (humidity - 65)
    X = pd.DataFrame(
        {
            "hour": hour,
            "workday": workday,
            "temperature": temperature,
            "humidity": humidity,
            "wind": wind,
        }
    )
    return X, mean - 0.3 * wind + rng.normal(0, 15, N_ROWS)


def draw_pairs(ax, pairs) -> None:
    """H against the size of the interaction: a large ratio need not be a large effect."""
    ax.scatter(pairs.unnormalized, pairs.h, color="tab:blue", zorder=3)
    for names, size, h in zip(pairs.terms, pairs.unnormalized, pairs.h, strict=True):
        if h > 0.15:
            text = " × ".join(names)
            ax.annotate(text, (size, h), xytext=(5, 4), textcoords="offset points", size="small")
    ax.set(xlabel="size of the interaction (standard deviation, bicycles)", ylabel="Friedman's H")
    ax.set_xlim(0, 1.35 * pairs.unnormalized.max())
    ax.set_ylim(0, 1.1 * pairs.h.max())
    ax.set_title("Pairs: how much of what two do is interaction", loc="left")
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
