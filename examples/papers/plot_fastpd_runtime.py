"""
FastPD, Figure 3: linear against quadratic run time
===================================================

Liu, Steensgaard, Wright, Pfister and Hiabu, "Fast Estimation of Partial Dependence Functions
using Trees" (2024). XGBoost learns a function of seven features (the paper's DGP 2) by 20 trees
of depth 5. As many rows are explained as there are in the background. FastPD finds all components
of all orders, and its time grows with the number of rows; ``shap.TreeExplainer`` finds SHAP
values, and its time grows with the square of it, as each row meets each row of the background.

The paper draws times and prints none. What it claims are the exponents, 1 and 2, which the script
fits to what it measures: the slopes of the lines in the figure. ``--full`` takes the paper's
1000, 2000, ..., 8000 rows, which keeps shap busy for ten minutes; by default it gets 1000 at
most. Ours are medians of 5 runs and shap's single runs (the paper: 100). At the paper's sizes our
time is nearly all for reading and checking the model, which takes as long for one row, so our
line goes on to 256 000 rows and the exponent is that of the last part. Without shap installed
there is one line. The features have mean 0, as the paper says; its published code has mean 1.

::

    python examples/papers/plot_fastpd_runtime.py
    python examples/papers/plot_fastpd_runtime.py --full
"""

import argparse
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import xgboost

from fastpd_sklearn import FastPDExplainer

try:
    import shap
except ImportError:
    shap = None

FASTPD = "FastPD: all components"
SHAP = "shap: interventional SHAP values"
LARGE = [16_000, 32_000, 64_000, 128_000, 256_000]
LAST = 3
"""So many points tell the exponent: those where rows, and not the model, take the time."""

PAPER = {FASTPD: 1, SHAP: 2}
REPEATS = {FASTPD: 5, SHAP: 1}
COLOURS = {FASTPD: "#D55E00", SHAP: "#0072B2"}


def main() -> None:
    """Fit, time, print and draw."""
    parser = argparse.ArgumentParser(description="FastPD, Figure 3")
    parser.add_argument("--full", action="store_true", help="1000, ..., 8000 rows")
    full = parser.parse_args().full
    sizes = {FASTPD: [1000, 4000, 8000], SHAP: [250, 500, 1000]}
    if full:
        sizes = {name: list(range(1000, 8001, 1000)) for name in sizes}
    sizes[FASTPD] += LARGE
    tasks = {FASTPD: all_components}
    if shap is None:
        print("shap is not installed: pip install shap for the other line")
    else:
        tasks[SHAP] = interventional_shap
    X, y = make_data(max(sizes[FASTPD]), seed=0)
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=5, n_jobs=1).fit(X[:8000], y[:8000])
    seconds = {
        name: [median_time(task, model, X[:n], REPEATS[name]) for n in sizes[name]]
        for name, task in tasks.items()
    }
    if shap is not None:
        compare(model, X[:250])
    exponents = print_times(sizes, seconds)
    draw(sizes, seconds, exponents)
    print("\nfastpd_figure_3.png")


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """DGP 2: seven normal features, each correlated with its mirror image."""
    rng = np.random.default_rng(seed)
    covariance = 3 * np.eye(7) + 0.6 * np.fliplr(np.eye(7))
    X = rng.multivariate_normal(np.zeros(7), covariance, n).astype(np.float32)
    x1, x2, x3, x4, x5, x6, x7 = X.astype(float).T
    mean = 3 * np.sin(x1) + 2.5 * np.cos(0.3 * x2) + 1.12 * x3 + np.sin(x4 * x5) + 0.7 * x6 * x7
    return X, mean + rng.normal(0, 0.1, n)


def all_components(model, X) -> np.ndarray:
    """Every component that is not zero, of every row over all rows; with reading the model."""
    explainer = FastPDExplainer(output="component", max_order=None, n_jobs=1)
    return explainer.fit(model, X).transform(X)


def interventional_shap(model, X) -> np.ndarray:
    """SHAP values of every row over all rows; a bare array would be cut to 100 of them."""
    background = shap.maskers.Independent(X, max_samples=len(X))
    return shap.TreeExplainer(model, background).shap_values(X, check_additivity=False)


def median_time(task, model, X, repeats: int) -> float:
    """Seconds of processor time, so that other work on the machine counts less."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        task(model, X)
        found.append(time.process_time() - start)
    return float(np.median(found))


def compare(model, X) -> None:
    """The two lines are of the same values: those of shap are sums of shares of components."""
    explainer = FastPDExplainer(output="component", max_order=None, n_jobs=1).fit(model, X)
    difference = np.abs(explainer.explain(X).shap_values() - interventional_shap(model, X)).max()
    print(f"SHAP values of both differ by at most {difference:.1e}\n")


def print_times(sizes, seconds) -> dict[str, float]:
    """Times, and the exponents of the number of rows that fit them best."""
    exponents = {}
    print("exponents of the number of rows")
    for name, found in seconds.items():
        exponents[name] = np.polyfit(np.log(sizes[name][-LAST:]), np.log(found[-LAST:]), 1)[0]
        print(f"{name:34s} paper: {PAPER[name]}   ours: {exponents[name]:.2f}")
    for name, found in seconds.items():
        print(f"\n{name}\n{'rows':>8s}  CPU seconds")
        for n, duration in zip(sizes[name], found, strict=True):
            print(f"{n:8d}  {duration:.3f}")
    return exponents


def draw(sizes, seconds, exponents) -> None:
    """Figure 3, and beside it on logarithmic axes, where exponents are slopes."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax in axes:
        for name, found in seconds.items():
            label = f"{name}, $n^{{{exponents[name]:.1f}}}$"
            ax.plot(sizes[name], found, "o-", color=COLOURS[name], label=label)
        ax.set_xlabel("rows, explained and in the background")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("CPU seconds, one thread")
    axes[0].set_xlim(0, 1.1 * 8000)
    axes[0].set_title("Figure 3: run time", loc="left")
    axes[1].set(xscale="log", yscale="log")
    axes[1].set_title("the same, with logarithmic axes", loc="left")
    axes[1].legend(frameon=False, loc="upper left", fontsize="small")
    axes[1].set_ylim(top=axes[1].get_ylim()[1] * 6)
    figure.savefig("fastpd_figure_3.png", dpi=130)


if __name__ == "__main__":
    main()
