"""
The functional decomposition, Figure 1: what a SHAP value hides
===============================================================

Hiabu, Meyer and Wright, "Unifying local and global model explanations by functional decomposition
of low dimensional structures" (AISTATS 2023), section 1.1. XGBoost learns ``X1 + X2 + 2 X1 X2``
of two standard normal features that are correlated by 0.3. At the point (1, -0.7) the SHAP value
of the first feature is zero in truth, and yet the feature matters: its main effect, 0.4, and its
share of the interaction, -0.4, cancel. SHAP values are clouds that mix the two; components are
functions.

The settings are those of the paper's published code: 10 000 rows, 20 trees of depth 4, learning
rate 0.1. The paper's numbers are those of the function. Ours are those of a model of it, in these
settings and with 500 trees at half of the learning rate. It is small enough to have no reduced
setting.

::

    python examples/papers/plot_glex_shap.py
"""

import argparse

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import xgboost

from fastpd_sklearn import FastPDExplainer

CORRELATION = 0.3
POINT = np.array([[1.0, -0.7]], dtype=np.float32)
PAPER = {"SHAP value": 0.0, "main effect": 0.4, "half of the interaction": -0.4}
MODELS = {
    "paper's settings": {"n_estimators": 20, "max_depth": 4, "learning_rate": 0.1},
    "500 trees": {"n_estimators": 500, "max_depth": 4, "learning_rate": 0.05},
}


def main() -> None:
    """Fit, explain the point, print and draw."""
    parser = argparse.ArgumentParser(description="The functional decomposition, Figure 1")
    parser.add_argument("--full", action="store_true", help="the same: there is no reduced setting")
    parser.parse_args()
    X, y = make_data(10_000, seed=2022)
    explainers = {
        name: FastPDExplainer(output="component").fit(
            xgboost.XGBRegressor(n_jobs=1, **settings).fit(X, y), X
        )
        for name, settings in MODELS.items()
    }
    print_point(explainers)
    draw(explainers["paper's settings"].explain(X), X)
    print("\nglex_figure_1.png")


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two features, and the response with noise."""
    rng = np.random.default_rng(seed)
    covariance = [[1.0, CORRELATION], [CORRELATION, 1.0]]
    X = rng.multivariate_normal([0.0, 0.0], covariance, n).astype(np.float32)
    x1, x2 = X.astype(float).T
    return X, x1 + x2 + 2 * x1 * x2 + rng.normal(size=n)


def print_point(explainers) -> None:
    """The decomposition of one SHAP value, smoothed over the neighbourhood of the point.

    The response of trees is a step function; the mean over a small square tells what they have
    learnt there.
    """
    steps = np.linspace(-0.15, 0.15, 31)
    square = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2).astype(np.float32)
    found = {}
    for name, explainer in explainers.items():
        here = explainer.explain(POINT + square)
        found[name] = {
            "SHAP value": here.shap_values()[:, 0].mean(),
            "main effect": here["x0"].mean(),
            "half of the interaction": here["x0", "x1"].mean() / 2,
        }
    print(f"at (1, -0.7), first feature{'paper':>10s}" + "".join(f"{name:>20s}" for name in found))
    for part, value in PAPER.items():
        ours = "".join(f"{values[part]:20.2f}" for values in found.values())
        print(f"{part:27s}{value:10.2f}{ours}")


def draw(explanation, X) -> None:
    """SHAP values above, components below, within two standard deviations."""
    inside = (np.abs(X) <= 2).all(axis=1)
    shap = explanation.shap_values()[inside]
    x = X[inside]
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.5), layout="constrained")
    for k in range(2):
        axes[0, k].scatter(x[:, k], shap[:, k], s=2, color="#0072B2", alpha=0.3, rasterized=True)
        order = np.argsort(x[:, k])
        component = explanation[f"x{k}"][inside][order]
        axes[1, k].plot(x[order, k], component, color="#D55E00", label="model")
        truth = x[order, k] - 2 * CORRELATION
        axes[1, k].plot(x[order, k], truth, color="black", linestyle="--", label="function")
        axes[0, k].set(ylabel=rf"SHAP value $\phi_{k + 1}$", ylim=(-5, 5))
        axes[1, k].set(xlabel=f"$x_{k + 1}$", ylabel=f"main effect $m_{k + 1}$", ylim=(-5, 5))
        axes[1, k].legend(frameon=False)
    axes[0, 2].axis("off")
    pair = explanation["x0", "x1"][inside]
    limit = np.abs(pair).max()
    drawn = axes[1, 2].scatter(*x.T, c=pair, s=4, cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(drawn, ax=axes[1, 2], label="interaction $m_{12}$")
    axes[1, 2].set(xlabel="$x_1$", ylabel="$x_2$")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Figure 1: SHAP values (top) mix what components (bottom) tell apart")
    figure.savefig("glex_figure_1.png", dpi=130)


if __name__ == "__main__":
    main()
