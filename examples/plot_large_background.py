"""
A hundred rows, or all of them
==============================

Interventional SHAP values are averages over a background. It is usual to draw a hundred rows for
it, because most methods multiply the rows that are explained by those of the background. What does
the draw cost? The values of 200 people over samples of several sizes are compared with those over
all 50,000 rows, which take no longer here than a moment.
"""

# %%
# A model of incomes, made up
# ---------------------------
# Some columns have long tails, as money does, and one is rare: they are what a small sample misses.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn import FastPDExplainer

rng = np.random.default_rng(0)
n_rows = 50_000
people = pd.DataFrame(
    {
        "wealth": rng.lognormal(3, 1.5, n_rows),
        "schooling": rng.integers(8, 21, n_rows).astype(float),
        "experience": rng.uniform(0, 45, n_rows),
        "owns a firm": (rng.random(n_rows) < 0.03).astype(float),
        "hours": rng.normal(38, 6, n_rows),
        "children": rng.poisson(1.2, n_rows).astype(float),
    }
)
income = (
    15
    + 1.5 * people["schooling"]
    + 0.4 * people["experience"]
    + 2 * np.log1p(people["wealth"])
    + 40 * people["owns a firm"] * (people["schooling"] > 12)
    + 0.5 * (people["hours"] - 38)
    + rng.normal(0, 4, n_rows)
)
model = HistGradientBoostingRegressor(max_iter=50, random_state=0).fit(people, income)
explained = people[:200]


def shap_values(background):
    """SHAP values of the explained people in thousands a year, and seconds."""
    start = perf_counter()
    phi = FastPDExplainer(output="shap").fit(model, background).transform(explained)
    return phi, perf_counter() - start


truth, seconds = shap_values(people)
print(f"over all {n_rows} rows: {seconds:.1f} s")

# %%
# The error of a sample
# ---------------------
# Each size is drawn 8 times. The error is the largest that any feature of a person has, as the
# median over the people; and how many people get another feature as their strongest is counted.

n_draws = 8
sizes = [30, 100, 300, 1000, 3000]
strongest = np.abs(truth).argmax(axis=1)
errors, changed = [], []
for size in sizes:
    draws = [shap_values(people.sample(size, random_state=seed))[0] for seed in range(n_draws)]
    errors.append([np.median(np.abs(phi - truth).max(axis=1)) for phi in draws])
    changed.append(np.mean([np.abs(phi).argmax(axis=1) != strongest for phi in draws]))
    print(
        f"{size:6d} rows: error {np.median(errors[-1]):5.2f} thousand a year, "
        f"strongest feature differs for {changed[-1]:4.1%}"
    )

# %%
# The error falls with the root of the size of the sample: a hundred times the rows for a tenth of
# it. Over all rows there is none.

figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
ax.plot(np.repeat(sizes, n_draws), np.ravel(errors), "o", color="#0072B2", alpha=0.35, markersize=4)
ax.plot(sizes, np.median(errors, axis=1), color="#0072B2", linewidth=2)
usual = sizes.index(100)
ax.annotate(
    f"100 rows: {changed[usual]:.0%} of the people\nget another strongest feature",
    (100, np.max(errors[usual])),
    (180, 1.25 * np.max(errors[usual])),
    va="center",
    arrowprops={"arrowstyle": "-", "color": "grey"},
)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
ax.set_xlabel("rows drawn for the background, of 50,000 (each dot a draw)")
ax.set_ylabel("error of a SHAP value\n[thousand a year, median person]")
ax.set_title("What drawing the background costs", loc="left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
