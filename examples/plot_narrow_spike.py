"""
A narrow spike, between the points of a grid
============================================

A fan shakes at one speed: between 1511 and 1527 turns a minute its housing resonates. A forest that
is trained on its log finds the band. Partial dependence on the usual grid of 100 points does not
show it, since the points are 27 turns apart and the band lies between two of them. The exact curve
has all steps of the model, wherever they are.
"""

# %%
# The log, and a model of it
# --------------------------
# Each row has a speed, a load and a temperature, and the vibration that was measured.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence

from fastpd_sklearn import FastPDExplainer

rng = np.random.default_rng(0)
n_rows = 20_000
log = pd.DataFrame(
    {
        "speed": rng.uniform(0, 3000, n_rows),
        "load": rng.uniform(0, 1, n_rows),
        "temperature": rng.normal(40, 8, n_rows),
    }
)
resonates = log["speed"].between(1511, 1527)
vibration = 1 + log["speed"] / 3000 + 0.5 * log["load"] + 6 * resonates
vibration += rng.normal(0, 0.3, n_rows)

model = RandomForestRegressor(30, min_samples_leaf=20, n_jobs=2, random_state=0)
model.fit(log, vibration)
print(f"{resonates.sum()} of {n_rows} rows are within the band")

# %%
# On a grid, and exactly
# ----------------------
# scikit-learn's grid goes from the 5th to the 95th percentile. The explainer's curve is called
# with any speeds, and has its breaks and levels as arrays.

rows = log[:2000]  # scikit-learn predicts all of them anew at each point
on_a_grid = partial_dependence(model, rows, ["speed"], grid_resolution=100, method="brute")
grid, on_grid = on_a_grid["grid_values"][0], on_a_grid["average"][0]

curve = FastPDExplainer().fit(model, rows).partial_dependence("speed").curve
exact = curve.levels[0]
high = np.flatnonzero(exact > exact.max() / 2)
start, end = curve.breaks[high[0] - 1], curve.breaks[high[-1]]
print(f"highest point of the grid:    {on_grid.max():.2f} mm/s")
print(f"highest level of the curve:   {exact.max():.2f} mm/s")
print(f"more than half as high from {start:.1f} to {end:.1f} turns a minute")
print(f"at the grid's points they differ by {np.abs(curve(grid)[0] - on_grid).max():.0e} mm/s")

# %%
# Where both have a value they agree. The grid joins its points as if there were nothing between
# them.

figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
edges = np.concatenate([[0], curve.breaks, [3000]])
ax.stairs(exact, edges, baseline=None, color="#0072B2", linewidth=1.5, label="all steps, exactly")
ax.plot(grid, on_grid, "o-", color="#D55E00", markersize=3, linewidth=1, label="grid of 100 points")
ax.annotate(
    f"resonance: {end - start:.0f} turns wide",
    (end, 0.9 * exact.max()),
    (1700, 0.9 * exact.max()),
    va="center",
    arrowprops={"arrowstyle": "-", "color": "grey"},
)
ax.set_xlim(0, 3000)
ax.set_xlabel("speed [turns a minute]")
ax.set_ylabel("partial dependence of vibration [mm/s]")
ax.set_title("The grid steps over the band that shakes", loc="left")
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
