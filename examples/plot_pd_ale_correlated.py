"""
Partial dependence, ALE and path-dependent PD where columns go together
=======================================================================

An engine is measured on a test bench at all combinations of speed and load, and its wear turns out
to be speed + load, with a steep penalty for high speed at low load. On the road the two go
together, and that corner never occurs: what a bit more speed does to the wear of cars on the road
is a straight line of slope 1. A model of the bench knows all of this. What do three averages of
it over cars on the road say of speed?

* Partial dependence sets the speed of all cars to a value, whatever their load: it averages the
  penalty over combinations that no car is in.
* Accumulated local effects change the speed of each car by a small step from where it is.
* Path-dependent PD averages over what the trees were trained on, the bench.

    python examples/plot_pd_ale_correlated.py
"""

# %%
# The model is boosted trees, fitted to the bench without noise; so its truth is known.

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from xgboost import XGBRegressor

from fastpd_sklearn import ALEExplainer, FastPDExplainer, PathDependentExplainer

NAMES = ("speed", "load")
COLOURS = {"ALE": "#0072B2", "PD": "#D55E00", "path-dependent PD": "#009E73"}
DASHES = {"ALE": "-", "PD": "--", "path-dependent PD": "-."}


def wear(rows):
    """The truth: both add up, but for a penalty in the corner of high speed and low load."""
    speed, load = rows.T
    return speed + load + 8.0 * np.maximum(speed - load - 0.4, 0.0)


def bench_and_road(n_rows: int = 4000):
    """All combinations, and those that occur, in which speed and load go together."""
    rng = np.random.default_rng(0)
    bench = rng.random((n_rows, 2))
    demand = 0.05 + 0.9 * rng.random(n_rows)
    road = demand[:, None] + 0.05 * rng.normal(size=(n_rows, 2))
    return bench, road.clip(0, 1)


def fit_model(bench):
    """Trees that follow the truth closely."""
    model = XGBRegressor(n_estimators=400, max_depth=5, learning_rate=0.08, random_state=0)
    return model.fit(bench, wear(bench))


# %%
# Three averages of one model. All are centred over the cars on the road, as ALE is.


def explain(model, road):
    """What each method says of each car and column, shape (n_cars, 2)."""
    effects = {
        "ALE": ALEExplainer(n_bins=40).fit(model, road).transform(road),
        "PD": FastPDExplainer().fit(model, road).transform(road),
        "path-dependent PD": PathDependentExplainer().fit(model).transform(road),
    }
    return {name: values - values.mean(axis=0) for name, values in effects.items()}


def report(model, road, effects) -> None:
    """How far each is from what a small step really does to cars on the road."""
    error = np.sqrt(np.mean((model.predict(road) - wear(road)) ** 2))
    inside = np.mean(road[:, 0] - road[:, 1] > 0.4)
    print(
        f"The model's error on the road is {error:.3f}; {inside:.1%} of cars are in the corner.\n"
    )
    print(f"{'root mean square error of':<28}{NAMES[0]:>10}{NAMES[1]:>10}")
    truth = road - road.mean(axis=0)  # of slope 1 in both columns
    for name, values in effects.items():
        errors = np.sqrt(np.mean((values - truth) ** 2, axis=0))
        print(f"{name:<28}{errors[0]:>10.3f}{errors[1]:>10.3f}")


# %%
# The picture: where the cars are, and the curves.


def draw(model, road, effects) -> None:
    """The model with the cars upon it, and the three curves of both columns."""
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.4), layout="constrained")
    draw_model(axes[0], model, road)
    for j, axis in enumerate(axes[1:]):
        draw_curves(axis, road, effects, j)
    axes[1].sharey(axes[2])
    axes[1].set_ylabel("effect on wear")
    axes[1].legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig("plot_pd_ale_correlated.png", dpi=110)
    print("\nThe curves are drawn in plot_pd_ale_correlated.png")


def draw_model(axis, model, road) -> None:
    """The model's predictions of all combinations, and those that occur."""
    grid = np.linspace(0, 1, 80)
    rows = np.column_stack([part.ravel() for part in np.meshgrid(grid, grid)])
    image = axis.pcolormesh(grid, grid, model.predict(rows).reshape(80, 80), cmap="YlOrBr")
    axis.plot(*road[:500].T, ".", color="0.1", markersize=2, alpha=0.6)
    axis.text(0.97, 0.05, "no car is here", ha="right", color="white", fontsize=9)
    axis.set_xlabel(NAMES[0])
    axis.set_ylabel(NAMES[1])
    axis.figure.colorbar(image, ax=axis, label="predicted wear")


def draw_curves(axis, road, effects, j: int) -> None:
    """What each method says along a column, and the truth."""
    order = np.argsort(road[:, j])
    x = road[order, j]
    axis.plot(x, x - x.mean(), color="0.6", linewidth=5, label="truth on the road")
    for name, values in effects.items():
        axis.plot(x, values[order, j], DASHES[name], color=COLOURS[name], linewidth=1.8, label=name)
    axis.plot(x[::20], np.full(len(x[::20]), 0.03), "|", color="0.3", alpha=0.4,
              transform=axis.get_xaxis_transform())  # fmt: skip
    axis.set_xlabel(NAMES[j])
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Fit, explain, print and draw."""
    bench, road = bench_and_road()
    model = fit_model(bench)
    effects = explain(model, road)
    report(model, road, effects)
    draw(model, road, effects)


if __name__ == "__main__":
    main()
