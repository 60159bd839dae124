"""
How far to trust a curve: the error that comes from the background
==================================================================

Partial dependence is a mean over a background. Rows drawn anew give another curve of the very same
model, and with a small background quite another one. How far off may it be, and how many rows are
enough? ``n_jackknife=20`` puts each row into one of 20 groups as it is counted; leaving out one
group at a time tells, with no second look at the data and no formula for the model.

Here the population is known, 40 000 homes with their heat demand, so that what the bands promise
can be checked: how often they cover the curve that belongs to the whole population.

    python examples/plot_uncertainty.py
"""

# %%
# A population, and a model of it that stays as it is from here on. Demand falls with insulation,
# and the more so the larger the home; the two go together, since new homes are large and well
# insulated.

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import ImportanceDisplay

SIZES = (50, 200, 800, 3200)
FEATURE = "insulation"
GRID = np.linspace(0.05, 0.95, 19)


def population(n_homes: int = 40_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Homes, and what they need in MWh a year."""
    rng = np.random.default_rng(0)
    insulation = rng.beta(2, 2, n_homes)
    area = 40 + 120 * rng.beta(2, 4, n_homes) + 60 * insulation
    people = rng.integers(1, 6, n_homes)
    demand = 0.2 * area * (1.3 - insulation) + 0.8 * people + rng.normal(0, 1, n_homes)
    return pd.DataFrame({"insulation": insulation, "area": area, "people": people}), demand


# %%
# The curve of a background, with its intervals, is one call. The whole population as the
# background gives the truth.


def curve_of(model, background):
    """Partial dependence with standard errors and 95% intervals."""
    explainer = FastPDExplainer(n_jackknife=20).fit(model, background)
    return explainer.partial_dependence(FEATURE, GRID)


def check(model, homes, truth, n_draws: int = 25) -> pd.DataFrame:
    """What the jackknife says for backgrounds of each size, and what really happens."""
    lines = []
    for size in SIZES:
        drawn = [curve_of(model, homes.sample(size, random_state=seed)) for seed in range(n_draws)]
        curves = np.array([one.average[0] for one in drawn])
        covers = [(one.lower[0] <= truth) & (truth <= one.upper[0]) for one in drawn]
        lines.append(
            {
                "rows": size,
                "standard error": np.mean([one.standard_error[0] for one in drawn]),
                "real spread": np.sqrt(np.mean((curves - truth) ** 2)),
                "covered": np.mean(covers),
            }
        )
    return pd.DataFrame(lines)


# %%
# The picture: two backgrounds, the error against the number of rows, and importances.


def draw(model, homes, truth, table) -> None:
    """Two curves with bands, the errors by size, and error bars of importances."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for axis, size in zip(axes, SIZES[:2], strict=False):
        draw_curve(axis, curve_of(model, homes.sample(size, random_state=1)), truth)
        axis.set_title(f"a background of {size} homes", fontsize=10)
    axes[1].sharey(axes[0])
    axes[0].set_ylabel("mean demand, MWh a year")
    axes[0].legend(frameon=False, fontsize=9)
    axes[2].loglog(table["rows"], table["standard error"], "o-", color="#0072B2")
    axes[2].loglog(table["rows"], table["real spread"], "x", color="0.2", markersize=8)
    axes[2].legend(["as the jackknife says", "as backgrounds differ"], frameon=False, fontsize=9)
    axes[2].set_xticks(SIZES, SIZES)
    axes[2].set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    axes[2].minorticks_off()
    axes[2].set_xlabel("rows of the background")
    axes[2].set_ylabel("error of the curve, MWh a year")
    explainer = FastPDExplainer(output="component", n_jackknife=20)
    explainer.fit(model, homes.sample(SIZES[1], random_state=1))
    ImportanceDisplay.from_explainer(explainer, homes[:1000], ax=axes[3])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig("plot_uncertainty.png", dpi=110)
    print("\nThe curves are drawn in plot_uncertainty.png")


def draw_curve(axis, curve, truth) -> None:
    """A curve with its band, and that of the population."""
    axis.fill_between(GRID, curve.lower[0], curve.upper[0], alpha=0.2, linewidth=0)
    axis.plot(GRID, curve.average[0], label="this background, 95% band")
    axis.plot(GRID, truth, "--", color="0.2", label="all 40 000 homes")
    axis.set_xlabel(FEATURE)


def main() -> None:
    """Fit, check, print and draw."""
    homes, demand = population()
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0)
    model.fit(homes[:5000], demand[:5000])
    truth = FastPDExplainer().fit(model, homes).partial_dependence(FEATURE, GRID).average[0]
    table = check(model, homes, truth)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    draw(model, homes, truth, table)


if __name__ == "__main__":
    main()
