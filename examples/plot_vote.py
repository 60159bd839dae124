"""
What a vote of three libraries has learnt, and where its members disagree
=========================================================================

XGBoost, LightGBM and scikit-learn's histogram boosting predict the progression of diabetes
together. The script explains the vote and each of its members over all patients: the curve of the
vote is the mean of theirs. It prints on which measurements they disagree most, and draws those to
``vote.png``.

::

    python examples/plot_vote.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from xgboost import XGBRegressor

from fastpd_sklearn import FastPDExplainer

MEMBERS = {
    "XGBoost": XGBRegressor(n_estimators=60, max_depth=3, learning_rate=0.1),
    "LightGBM": LGBMRegressor(n_estimators=60, max_depth=3, learning_rate=0.1, verbose=-1),
    "scikit-learn": HistGradientBoostingRegressor(max_iter=60, max_depth=3, learning_rate=0.1),
}
COLOURS = {"XGBoost": "#D55E00", "LightGBM": "#0072B2", "scikit-learn": "#009E73"}
SHOWN = {
    "bmi": "body mass index [kg/m²]",
    "bp": "mean blood pressure [mmHg]",
    "s1": "total cholesterol [mg/dl]",
    "s2": "LDL cholesterol [mg/dl]",
    "s3": "HDL cholesterol [mg/dl]",
    "s4": "total / HDL cholesterol",
    "s5": "log of triglycerides",
    "s6": "blood sugar [mg/dl]",
    "age": "age [years]",
}


def main() -> None:
    """Fit, explain, print and draw."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    vote = VotingRegressor(list(MEMBERS.items())).fit(X, y)
    explainers = {
        name: FastPDExplainer(output="pd").fit(model, X)
        for name, model in vote.named_estimators_.items()
    }
    together = FastPDExplainer(output="pd").fit(vote, X)

    own = {name: explainer.transform(X) for name, explainer in explainers.items()}
    error = np.abs(together.transform(X) - np.mean(list(own.values()), axis=0)).max()
    print(f"The vote's partial dependence is the mean of its members', up to {error:.1e}\n")
    spread = print_spread(own, together.feature_names_in_)
    draw(explainers, together, X, [name for name in spread if name in SHOWN][:3])


def print_spread(own, names) -> list[str]:
    """A table of the members' disagreement by feature; their names in that order."""
    spread = np.std(list(own.values()), axis=0).mean(axis=0)
    effect = np.mean(list(own.values()), axis=0).std(axis=0)
    order = np.argsort(-spread)
    print(f"{'feature':<9}{'effect (std)':>14}{'disagreement (std)':>21}")
    for k in order:
        print(f"{names[k]:<9}{effect[k]:>14.2f}{spread[k]:>21.2f}")
    return [names[k] for k in order]


def draw(explainers, together, X, names) -> None:
    """The exact curves of the vote and its members on a few measurements."""
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), sharey=True, layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        draw_curve(axis, together, X, name, color="0.75", linewidth=6, label="vote")
        for member, explainer in explainers.items():
            draw_curve(axis, explainer, X, name, color=COLOURS[member], linewidth=1.2, label=member)
        axis.plot(X[name], np.full(len(X), 0.03), "|", color="0.3", alpha=0.35, markersize=7,
                  transform=axis.get_xaxis_transform())  # fmt: skip
        axis.set_xlabel(SHOWN[name])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("mean predicted progression")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig("vote.png", dpi=110)
    print("\nWhere they disagree most is drawn in vote.png")


def draw_curve(axis, explainer, X, name: str, **style) -> None:
    """A curve with all its steps, within the range of the data."""
    curve = explainer.partial_dependence(name).curve
    low, high = X[name].min(), X[name].max()
    # XGBoost splits below a value and the others at it: pieces too narrow to see are left out.
    breaks = curve.breaks[(curve.breaks > low) & (curve.breaks < high - 1e-6 * (high - low))]
    edges = np.concatenate([[low], breaks, [high]])
    axis.stairs(curve((edges[1:] + edges[:-1]) / 2)[0], edges, baseline=None, **style)


if __name__ == "__main__":
    main()
