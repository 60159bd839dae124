"""
Trees whose leaves are lines
============================

A made-up house is heated below 16 degrees and cooled above 24, and wind makes the heating work
harder. LightGBM is fitted twice, with a constant and with a linear function in each leaf
(``linear_tree=True``). Both partial dependences are exact: the first is a step function, the second
is made of straight lines with a jump or a bend where the trees split. The script prints how far
each is from the truth, and what the slopes say a degree costs, and draws both to
``plot_linear_leaves.png``.

::

    python examples/plot_linear_leaves.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

from fastpd_sklearn import FastPDExplainer

# %%
# The data: kWh a day by temperature and wind, some temperatures missing.


def demand(temperature, wind):
    """Mean kWh a day."""
    heating = np.maximum(16 - temperature, 0) * (1.2 + 0.06 * wind)
    return 8 + heating + 1.5 * np.maximum(temperature - 24, 0)


rng = np.random.default_rng(0)
n = 3000
X = pd.DataFrame({"temperature": rng.uniform(-8, 36, n), "wind": rng.gamma(3.0, 2.5, n)})
y = demand(X["temperature"], X["wind"]) + rng.normal(0, 1.5, n)
X.loc[rng.random(n) < 0.05, "temperature"] = np.nan

# %%
# Two models of 30 small trees, and their exact partial dependence.

models = {
    "constant leaves": LGBMRegressor(n_estimators=30, num_leaves=6, verbose=-1),
    "linear leaves": LGBMRegressor(n_estimators=30, num_leaves=6, linear_tree=True, verbose=-1),
}
explainers = {name: FastPDExplainer().fit(model.fit(X, y), X) for name, model in models.items()}
curves = {
    name: {column: explainer.partial_dependence(column).curve for column in X}
    for name, explainer in explainers.items()
}
points = np.linspace(-7, 35, 400)
truth = np.array([demand(t, X["wind"]).mean() for t in points])
for name, curve in curves.items():
    error = curve["temperature"](points)[0] - truth
    print(f"{name:16} error of the curve: {np.sqrt(np.mean(error**2)):.2f} kWh")

# %%
# A slope is what one degree more does to the mean prediction, from leaf to leaf.

line = curves["linear leaves"]["temperature"]
pieces = np.searchsorted(line.breaks, points)
for low, high in ((-5, 12), (17, 23), (26, 34)):
    inside = (points > low) & (points < high)
    slope = np.diff(line(points[inside][[0, -1]]))[0, 0] / (high - low)
    within = line.slopes[0, pieces[inside]].mean()
    print(
        f"{low:3} to {high:2} degrees: {slope:+.2f} kWh a degree, {within:+.2f} of it within leaves"
    )

# %%
# Corners joined by lines are the curve of linear leaves; steps are that of constant ones.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
ranges = {"temperature": (-7.0, 35.0), "wind": (0.5, 18.0)}
for ax, column in zip(axes, X, strict=True):
    low, high = ranges[column]
    grid = np.linspace(low, high, 400)
    other = X.drop(columns=column).iloc[:, 0].dropna()
    if column == "temperature":
        exact = [demand(t, other).mean() for t in grid]
    else:
        exact = [demand(other, w).mean() for w in grid]
    ax.plot(grid, exact, color="0.6", linewidth=4, label="truth")
    step = curves["constant leaves"][column]
    inner = step.breaks[(step.breaks > low) & (step.breaks < high)]
    edges = np.concatenate([[low], inner, [high]])
    ax.stairs(step(edges[1:])[0], edges, baseline=None, color="C1", label="constant leaves")
    corners, values = curves["linear leaves"][column].corners(low, high)
    ax.plot(corners, values[0], color="C0", linewidth=1.4, label="linear leaves")
    ax.set_xlabel({"temperature": "temperature, °C", "wind": "wind, m/s"}[column])
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("mean demand, kWh a day")
axes[1].legend(frameon=False)
fig.savefig("plot_linear_leaves.png", dpi=110)
