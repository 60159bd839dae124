"""
FastPD, Figures 1, 2 and 4: what converges to the model's SHAP value
====================================================================

Liu, Steensgaard, Wright, Pfister and Hiabu, "Fast Estimation of Partial Dependence Functions
using Trees" (2024). Two standard normal features are correlated by 0.3, ``Y = X1 + X2 + 2 X1 X2 +
noise`` (the paper's DGP 1), and XGBoost learns it. The SHAP value of the *model* under the *true*
distribution is known: the model is constant on a grid of cells, whose probabilities are those of
the normal distribution. How close to it do estimates come that know the distribution from a
sample?

* Figure 2: the error of FastPD falls with the background, that of path-dependent SHAP does not
  fall with anything.
* Figure 1: both beside the truth, row by row, in the run of median error.
* Figure 4: the main effect of the first feature, which in truth is ``x - 0.6``.

The paper prints no numbers in these figures. By default there are 6 runs of 500 rows and 3 of
5000, with hyperparameters that a search has found before. ``--full`` makes the paper's 100 runs
of each, and a search in the paper's ranges by 5-fold cross-validation: of 50 random pairs of
depth and learning rate, each with its best number of trees up to 1000. It searches once for each
size, where the paper does for each run.

::

    python examples/papers/plot_fastpd_accuracy.py
    python examples/papers/plot_fastpd_accuracy.py --full
"""

import argparse

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import xgboost
from scipy.special import ndtr

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer

CORRELATION = 0.3
SIZES = (500, 5000)
BACKGROUNDS = (50, 100, 500, 5000)
N_JOBS = 1
# What the search of --full finds, for the reduced setting.
FOUND = {
    500: {"num_boost_round": 86, "eta": 0.222, "max_depth": 2},
    5000: {"num_boost_round": 544, "eta": 0.0182, "max_depth": 4},
}
PATH = "path-dependent"
COLOURS = {"truth": "black", "FastPD": "#D55E00", "FastPD-100": "#E69F00", PATH: "#0072B2"}


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description="FastPD, Figures 1, 2 and 4")
    parser.add_argument("--full", action="store_true", help="100 runs, and the paper's search")
    full = parser.parse_args().full
    n_runs = dict.fromkeys(SIZES, 100) if full else {500: 6, 5000: 3}
    runs = {}
    for n in SIZES:
        settings = search(n) if full else FOUND[n]
        print(f"n = {n}: {settings}")
        runs[n] = [one_run(n, seed, settings) for seed in range(n_runs[n])]
    print_errors(runs)
    draw_values(median_run(runs[500], "FastPD", "shap_error"))
    draw_errors(runs)
    draw_component(median_run(runs[5000], "FastPD", "component_error"))
    print("\nfastpd_figure_1.png, fastpd_figure_2.png, fastpd_figure_4.png")


# %%
# Data and model
# --------------


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """DGP 1; XGBoost looks at features in single precision."""
    rng = np.random.default_rng(seed)
    covariance = [[1.0, CORRELATION], [CORRELATION, 1.0]]
    X = rng.multivariate_normal([0.0, 0.0], covariance, n).astype(np.float32)
    x1, x2 = X.astype(float).T
    return X, x1 + x2 + 2 * x1 * x2 + rng.normal(size=n)


def search(n: int) -> dict:
    """The best of 50 random pairs, each with its best number of trees, by cross-validation."""
    X, y = make_data(n, seed=10_000)
    data = xgboost.DMatrix(X, y)
    rng = np.random.default_rng(0)
    best, best_error = None, np.inf
    for _ in range(50):
        parameters = {"eta": float(rng.uniform(0.01, 0.3)), "max_depth": int(rng.integers(2, 7))}
        table = xgboost.cv(
            {**parameters, "nthread": N_JOBS},
            data,
            num_boost_round=1000,
            nfold=5,
            early_stopping_rounds=20,
            as_pandas=False,
            seed=0,
        )
        errors = table["test-rmse-mean"]
        if min(errors) < best_error:
            best_error = min(errors)
            best = {"num_boost_round": int(np.argmin(errors)) + 1, **parameters}
    return best


def one_run(n: int, seed: int, settings: dict) -> dict:
    """Values of all methods in one data set, and their mean squared errors."""
    X, y = make_data(n, seed)
    parameters = {"nthread": N_JOBS, **settings}
    rounds = parameters.pop("num_boost_round")
    model = xgboost.train(parameters, xgboost.DMatrix(X, y), rounds)
    true_component, true_shap = under_the_true_distribution(model, X)
    components = {"truth": true_component}
    shap = {"truth": true_shap}
    explainers = {PATH: PathDependentExplainer(output="component", n_jobs=N_JOBS).fit(model)}
    explainers["FastPD"] = FastPDExplainer(output="component", n_jobs=N_JOBS).fit(model, X)
    for size in (size for size in BACKGROUNDS if size < n):
        # The rows are independent of each other: the first of them are a random sample.
        explainer = FastPDExplainer(output="component", n_jobs=N_JOBS)
        explainers[f"FastPD-{size}"] = explainer.fit(model, X[:size])
    for name, explainer in explainers.items():
        explanation = explainer.explain(X)
        components[name] = explanation["x0"]
        shap[name] = explanation.shap_values()[:, 0]
    return {
        "x": X[:, 0],
        "component": components,
        "shap": shap,
        "component_error": errors(components),
        "shap_error": errors(shap),
    }


def errors(values: dict) -> dict:
    """Mean squared difference from the truth."""
    names = [name for name in values if name != "truth"]
    return {name: np.mean((values[name] - values["truth"]) ** 2) for name in names}


# %%
# The truth
# ---------


def under_the_true_distribution(model, X) -> tuple[np.ndarray, np.ndarray]:
    """Main effect and SHAP value of the first feature, averaged over the normal distribution.

    Nothing here comes from an explainer: the model's predictions in all cells are weighted by the
    probabilities of the cells.
    """
    splits = [thresholds(model, f"f{k}") for k in range(2)]
    # A row is in the cell to the right of a threshold that it equals.
    inside = [np.concatenate([[-1e30], split]).astype(np.float32) for split in splits]
    mesh = np.stack(np.meshgrid(*inside, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = predict(model, mesh).reshape(len(inside[0]), len(inside[1]))
    edges = [np.concatenate([[-np.inf], split.astype(float), [np.inf]]) for split in splits]
    v1 = cell @ np.diff(ndtr(edges[1]))
    v2 = np.diff(ndtr(edges[0])) @ cell
    v0 = np.sum(cell * cell_probabilities(*edges))
    at = [np.searchsorted(splits[k], X[:, k], side="right") for k in range(2)]
    component = v1[at[0]] - v0
    return component, (component + cell[at[0], at[1]] - v2[at[1]]) / 2


def thresholds(model, name: str) -> np.ndarray:
    """Where the trees split a feature."""
    table = model.trees_to_dataframe()
    return np.unique(table.loc[table["Feature"] == name, "Split"].to_numpy(np.float32))


def predict(model, X) -> np.ndarray:
    """Predictions as float64."""
    return model.predict(xgboost.DMatrix(X)).astype(float)


def cell_probabilities(first, second) -> np.ndarray:
    """Probabilities of all cells under the bivariate normal distribution, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    # Nothing is left beyond 9 standard deviations, and wide cells are cut for the quadrature.
    fine = np.unique(np.concatenate([np.clip(first, -9, 9), np.linspace(-9, 9, 73)]))
    half = np.diff(fine)[:, None] / 2
    x = fine[:-1, None] + half * (nodes + 1)
    density = half * weights * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    spread = np.sqrt(1 - CORRELATION**2)
    given = np.diff(ndtr((second[:, None, None] - CORRELATION * x) / spread), axis=0)
    strips = np.einsum("cij,ij->ic", given, density)
    probabilities = np.zeros((len(first) - 1, len(second) - 1))
    np.add.at(probabilities, np.searchsorted(first, fine[:-1], side="right") - 1, strips)
    return probabilities


# %%
# What comes of it
# ----------------


def print_errors(runs: dict) -> None:
    """Medians over the runs."""
    print("\nmedian over the runs of the mean squared error of the SHAP value of the first feature")
    names = ["FastPD-50", "FastPD-100", "FastPD-500", "FastPD", PATH]
    print(f"{'':16s}" + "".join(f"{f'n = {n}':>12s}" for n in runs))
    for name in names:
        print(f"{name:16s}" + "".join(f"{median(runs[n], name):>12}" for n in runs))
    print("FastPD without a number has all n rows for its background.")
    paper = "the paper: FastPD falls with the background, path-dependent does not fall with n"
    fall = [float(median(runs[n], "FastPD")) for n in SIZES]
    path = [float(median(runs[n], PATH)) for n in SIZES]
    print(
        f"{paper}\nours: FastPD / {fall[0] / fall[1]:.1f}, path-dependent / {path[0] / path[1]:.2f}"
    )


def median(runs: list, name: str) -> str:
    """The median error of a method, where it was asked."""
    found = [run["shap_error"][name] for run in runs if name in run["shap_error"]]
    return f"{np.median(found):.5f}" if found else ""


def median_run(runs: list, name: str, error: str) -> dict:
    """The run whose error is the median: the most ordinary one."""
    order = np.argsort([run[error][name] for run in runs])
    return runs[order[(len(runs) - 1) // 2]]


def draw_values(run: dict) -> None:
    """Figure 1."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for ax, name in zip(axes, ("FastPD", PATH), strict=True):
        ax.scatter(run["x"], run["shap"]["truth"], s=16, color="#BBBBBB", label="model SHAP, exact")
        ax.scatter(run["x"], run["shap"][name], s=5, color=COLOURS[name], label=name)
        ax.set_title(f"{name}: mean squared error {run['shap_error'][name]:.4f}", loc="left")
        ax.set_xlabel("$x_1$")
        ax.legend(frameon=False, markerscale=1.5)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("SHAP value of $x_1$")
    figure.suptitle(f"Figure 1: {len(run['x'])} rows, explained and for background")
    figure.savefig("fastpd_figure_1.png", dpi=130)


def draw_errors(runs: dict) -> None:
    """Figure 2."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    for ax, (n, found) in zip(axes, runs.items(), strict=True):
        names = [f"FastPD-{size}" for size in BACKGROUNDS if size < n] + ["FastPD", PATH]
        boxes = ax.boxplot(
            [[run["shap_error"][name] for run in found] for name in names],
            tick_labels=[f"FastPD\n{background(name, n)}" for name in names[:-1]]
            + ["path-\ndependent"],
            patch_artist=True,
            medianprops={"color": "black"},
        )
        for name, box in zip(names, boxes["boxes"], strict=True):
            box.set_facecolor(COLOURS[PATH if name == PATH else "FastPD"])
            box.set_alpha(0.7)
        ax.set_title(f"{n} rows, {len(found)} runs", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yscale("log")
    axes[0].set_ylabel("mean squared error of SHAP of $x_1$")
    figure.suptitle("Figure 2: under FastPD is the number of rows in the background")
    figure.savefig("fastpd_figure_2.png", dpi=130)


def background(name: str, n: int) -> str:
    """How many rows FastPD averages over."""
    return name.partition("-")[2] or str(n)


def draw_component(run: dict) -> None:
    """Figure 4."""
    order = np.argsort(run["x"])
    x = run["x"][order]
    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    ax.plot(x, x - 2 * CORRELATION, color="#009E73", linestyle="--", label="of the function")
    for name in ("truth", "FastPD", "FastPD-100", PATH):
        label = "of the model, exact" if name == "truth" else name
        # FastPD lies on the truth: the narrow line on the wide one.
        style = {"linewidth": 5, "alpha": 0.3} if name == "truth" else {"linewidth": 1.3}
        ax.plot(x, run["component"][name][order], color=COLOURS[name], label=label, **style)
    ax.set_xlabel("$x_1$")
    ax.set_ylabel("main effect $m_1$")
    ax.set_title(f"Figure 4: the main effect in a model of {len(x)} rows", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig("fastpd_figure_4.png", dpi=130)


if __name__ == "__main__":
    main()
