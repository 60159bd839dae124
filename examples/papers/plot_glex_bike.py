"""
The functional decomposition, Figures 3 and 4: bike sharing, importance by order
================================================================================

Hiabu, Meyer and Wright, "Unifying local and global model explanations by functional decomposition
of low dimensional structures" (AISTATS 2023), sections 3.1 and 3.2.

*Figure 4* is about ``x1 + x3 + x2 x3 - 2 x2 x3 x4`` of four independent normal features and about
rented bicycles. SHAP importance tells that ``x1`` and ``x3`` matter most; components tell that
``x1`` has a main effect alone, ``x2`` and ``x4`` interactions alone, and ``x3`` both. The
importances of the function itself are known: ``x1`` has a main effect of ``sqrt(2 / pi)`` in the
mean, a half of the interaction of two is ``1 / pi``, and so on. *Figure 3* decomposes the
bicycles of Washington, 8645 hours of 2011, by hour, temperature and working day. The paper prints
no numbers in these figures, but says what is to be seen, which the script puts in numbers.

The settings are those of the paper's published code: 20 trees of depth 4, learning rate 0.1, and
six columns of the bicycles. They are small enough to have no reduced setting.

The bicycles (Fanaee-T and Gama 2014) are not shipped. Name a table of them, such as ``hour.csv``
of the UCI repository or ``Bikeshare`` of the R package ISLR2, or have the script fetch them from
OpenML. Without them it makes the first row of Figure 4.

::

    python examples/papers/plot_glex_bike.py
    python examples/papers/plot_glex_bike.py --data hour.csv
    python examples/papers/plot_glex_bike.py --fetch
"""

import argparse

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xgboost
from sklearn.datasets import fetch_openml

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.decomposition import importance

COLUMNS = ["day", "hr", "temp", "windspeed", "workingday", "hum"]
OTHER_NAMES = {
    "hour": "hr",
    "humidity": "hum",
    "year": "yr",
    "count": "bikers",
    "cnt": "bikers",
    "y": "bikers",
}
ORDERS = ["main effect", "2-way", "3-way", "4-way"]
COLOURS = ["#0072B2", "#56B4E9", "#E69F00", "#D55E00"]
FREE, WORK = "#009E73", "#CC79A7"


def main() -> None:
    """Fit, decompose, print and draw."""
    parser = argparse.ArgumentParser(description="The functional decomposition, Figures 3 and 4")
    parser.add_argument("--full", action="store_true", help="the same: there is no reduced setting")
    parser.add_argument("--data", help="a csv file of the bicycles")
    parser.add_argument("--fetch", action="store_true", help="fetch the bicycles from OpenML")
    options = parser.parse_args()
    X, y = make_data(10_000, seed=2022)
    found = {"simulated": importance(new_model().fit(X, y), X)}
    print_simulated(found["simulated"])
    bikes = read_bikes(options.data, options.fetch)
    if bikes is None:
        print("\nNo bicycles: --data FILE reads them, --fetch downloads them from OpenML.")
    else:
        X, y = bikes
        explainer = FastPDExplainer(output="component", max_order=None)
        explanation = explainer.fit(new_model().fit(X, y), X).explain(X)
        found["bicycles"] = importance(explainer, X)
        print_bikes(explanation, found["bicycles"], X)
        draw_bikes(explanation, X)
    draw_importance(found)
    print("\nglex_figure_4.png" + ("" if bikes is None else ", glex_figure_3.png"))


def new_model() -> xgboost.XGBRegressor:
    """The paper's model, with what were the defaults of XGBoost at the time."""
    return xgboost.XGBRegressor(
        n_estimators=20,
        max_depth=4,
        learning_rate=0.1,
        base_score=0.5,
        tree_method="exact",
        n_jobs=1,
    )


# %%
# Data
# ----


def make_data(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Four independent normal features."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x1", "x2", "x3", "x4"])
    x1, x2, x3, x4 = X.to_numpy().T
    return X, x1 + x3 + x2 * x3 - 2 * x2 * x3 * x4 + rng.normal(size=n)


def read_bikes(path: str | None, fetch: bool) -> tuple[pd.DataFrame, np.ndarray] | None:
    """The hours of 2011 from a file or from OpenML, or None."""
    if path is not None:
        try:
            return tidy_bikes(pd.read_csv(path))
        except OSError as error:
            raise SystemExit(f"--data {path} cannot be read: {error.strerror}") from error
    if fetch:
        try:
            frame = fetch_openml("Bike_Sharing_Demand", version=2, as_frame=True).frame
        except OSError as error:
            raise SystemExit(f"OpenML cannot be reached ({error}): use --data FILE") from error
        return tidy_bikes(frame)
    return None


def tidy_bikes(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The paper's columns, from any of the common tables of these data."""
    frame = frame.rename(columns=OTHER_NAMES)
    missing = {"hr", "temp", "windspeed", "workingday", "hum", "bikers"} - set(frame.columns)
    if missing:
        raise SystemExit(f"the table of bicycles lacks {sorted(missing)}: is it UCI's hour.csv?")
    if "yr" in frame.columns:
        frame = frame[frame["yr"].astype(float) == 0]
    frame = frame.reset_index(drop=True)
    hour = frame["hr"].astype(float)
    X = pd.DataFrame(
        {
            # A new day begins where the hour falls.
            "day": (hour.diff() < 0).cumsum() + 1,
            "hr": hour,
            # Celsius over 41, as in the paper.
            "temp": frame["temp"] / (41 if frame["temp"].max() > 1 else 1),
            "windspeed": frame["windspeed"],
            "workingday": frame["workingday"].astype(str).isin(["1", "1.0", "True"]),
            "hum": frame["hum"],
        }
    )
    return X[COLUMNS].astype(float), frame["bikers"].to_numpy(float)


# %%
# Figure 4: importance by order
# -----------------------------


def print_simulated(found) -> None:
    """Importances of the model beside those of the function."""
    half, third = 1 / np.pi, 2 / 3 * (2 / np.pi) ** 1.5
    main = np.sqrt(2 / np.pi)
    of_function = [[main, 0, 0], [0, half, third], [main, half, third], [0, 0, third]]
    print("importance by order, of the function and (in brackets) of the model")
    print(f"{'':12s}" + "".join(f"{order:>16s}" for order in ORDERS[:3]) + f"{'SHAP':>10s}")
    for k, name in enumerate(found.feature_names):
        parts = zip(of_function[k], found.feature_order_importances[k], strict=False)
        row = "".join(f"{truth:8.2f} ({ours:.2f}) " for truth, ours in parts)
        print(f"{name:12s}{row}{found.shap_importances[k]:9.2f}")


def draw_importance(found) -> None:
    """SHAP importance and importance by order, a row of panels a data set."""
    figure, axes = plt.subplots(
        len(found), 2, figsize=(10, 0.5 + 3 * len(found)), layout="constrained", squeeze=False
    )
    for row, (name, result) in zip(axes, found.items(), strict=True):
        at = np.arange(len(result.feature_names))
        row[0].bar(at, result.shap_importances, color="#888888")
        row[0].set_ylabel(f"{name}\nimportance")
        row[0].set_title("by SHAP values", loc="left")
        orders = result.feature_order_importances.shape[1]
        width = 0.8 / orders
        for order in range(orders):
            heights = result.feature_order_importances[:, order]
            place = at + (order - (orders - 1) / 2) * width
            row[1].bar(place, heights, width, color=COLOURS[order], label=ORDERS[order])
        row[1].set_title("by components", loc="left")
        for ax in row:
            ax.set_xticks(at, result.feature_names, rotation=15 if len(at) > 4 else 0)
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 1].legend(frameon=False, ncols=2, fontsize="small", loc="upper right")
    axes[0, 1].set_ylim(top=1.35 * axes[0, 1].get_ylim()[1])
    figure.suptitle("Figure 4")
    figure.savefig("glex_figure_4.png", dpi=130)


# %%
# Figure 3: the bicycles
# ----------------------


def print_bikes(explanation, found, X) -> None:
    """What the paper says of its figure, in numbers."""
    hour, work = X["hr"].to_numpy(), X["workingday"].to_numpy() == 1
    main = [explanation["hr"][hour == h].mean() for h in range(24)]
    pair, three = explanation["hr", "workingday"], explanation["hr", "temp", "workingday"]
    best = [int(np.argmax(main[:12])), 12 + int(np.argmax(main[12:]))]
    by_order = dict(zip(found.feature_names, found.feature_order_importances, strict=True))
    print(f"\nbicycles, {len(X)} hours")
    print("paper: many rented at commuting times in the morning and in the afternoon")
    print(f"ours:  the main effect of the hour peaks at {best[0]} and at {best[1]}")
    print("paper: no main effect of working days, but an interaction")
    main_effect, two_way = by_order["workingday"][:2]
    print(f"ours:  importance {main_effect:.1f} as a main effect, {two_way:.1f} in pairs")
    print("paper: working days have more in the morning, less in the night and at noon")
    times = {"at 8": hour == 8, "at 2": hour == 2, "at 13": hour == 13}
    at = ", ".join(f"{pair[work & when].mean():+.1f} {name}" for name, when in times.items())
    print(f"ours:  {at}")
    print("paper: hour and temperature interact more on free days, given by three-way components")
    size = [np.abs(three[~work]).mean(), np.abs(three[work]).mean()]
    print(f"ours:  mean size {size[0]:.1f} on free days, {size[1]:.1f} on working days")


def draw_bikes(explanation, X) -> None:
    """SHAP values, main effects, interactions of two and of three."""
    figure = plt.figure(figsize=(11, 13), layout="constrained")
    grid = figure.add_gridspec(4, 6)
    # All SHAP values and main effects have one scale, so that what is small looks small.
    shap = dict(zip(X.columns, explanation.shap_values().T, strict=True))
    for k, name in enumerate(["hr", "temp", "workingday"]):
        top = figure.add_subplot(grid[0, 2 * k : 2 * k + 2])
        top.scatter(X[name], shap[name], s=2, color="#888888", alpha=0.3, rasterized=True)
        top.set(xlabel=name, ylabel="SHAP value" if k == 0 else "", ylim=(-150, 150))
        below = figure.add_subplot(grid[1, 2 * k : 2 * k + 2], sharex=top, sharey=top)
        draw_line(below, X[name], explanation[name], "black")
        top.spines[["top", "right"]].set_visible(False)
        below.set(xlabel=name, ylabel="main effect" if k == 0 else "")
        if name == "workingday":
            below.set_xticks([0, 1], ["no", "yes"])
            below.set_xlim(-0.5, 1.5)
    work = X["workingday"].to_numpy() == 1
    for k, name in enumerate(["hr", "temp"]):
        ax = figure.add_subplot(grid[2, 2 * k : 2 * k + 2])
        pair = explanation[name, "workingday"]
        draw_line(ax, X[name][~work], pair[~work], FREE, label="free day")
        draw_line(ax, X[name][work], pair[work], WORK, label="working day")
        ax.set(xlabel=name, ylabel="interaction of two" if k == 0 else "")
        ax.legend(frameon=False, loc="lower right")
    everywhere = np.ones(len(X), dtype=bool)
    draw_map(figure, grid[2, 4:], X, explanation["hr", "temp"], everywhere, "hr and temp")
    three = explanation["hr", "temp", "workingday"]
    draw_map(figure, grid[3, :3], X, three, ~work, "of three, on free days")
    draw_map(figure, grid[3, 3:], X, three, work, "of three, on working days")
    figure.suptitle("Figure 3: SHAP values, main effects, interactions (bicycles an hour)")
    figure.savefig("glex_figure_3.png", dpi=110)


def draw_line(ax, x, values, colour, label=None) -> None:
    """A component of one feature, over its values; it is the same in all rows of a value."""
    curve = pd.Series(np.asarray(values)).groupby(np.asarray(x)).mean()
    ax.axhline(0, color="#CCCCCC", linewidth=0.8)
    ax.plot(curve.index, curve, color=colour, label=label)
    ax.spines[["top", "right"]].set_visible(False)


def draw_map(figure, place, X, values, rows, title) -> None:
    """A component over hour and temperature."""
    ax = figure.add_subplot(place)
    limit = np.abs(values).max()
    points = ax.scatter(
        X["hr"][rows],
        X["temp"][rows],
        c=values[rows],
        s=9,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        rasterized=True,
    )
    figure.colorbar(points, ax=ax)
    ax.set(xlabel="hr", ylabel="temp")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
