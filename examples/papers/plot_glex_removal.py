"""
The functional decomposition, Figure 5: a feature taken out after the fit
=========================================================================

Hiabu, Meyer and Wright, "Unifying local and global model explanations by functional decomposition
of low dimensional structures" (AISTATS 2023), section 3.3, the simulation. Women work 30 hours a
week and men 40, give or take one; a salary is 1 unit per hour, and 20 more for men. The medians
of predictions for men and for women differ by 30 in truth, of which 10 are for hours. A model
that is fitted again without sex reads it off the hours, and its medians differ as much. Sex taken
out of the fitted model leaves what the model gives to hours: in the paper 10.57.

The settings are those of the paper's published code: 10 000 people, two thirds of them for
training, 50 trees of depth 4, learning rate 0.1. The script finds the paper's 29.79, twice, and
not its 10.57, but 3.7 to 9.2 in 100 samples (and so does XGBoost 1.6, of the time of the paper).
The reason is in the simulation, and not in the decomposition. Hours 5 standard deviations on
either side tell the sexes apart without error, so that a split by sex and a split of hours at 35
are equally good, and rounding decides between them. With the two columns in the other order all
ties go to hours, the model never asks for sex, and nothing is there to remove: 29.8.

Let hours spread by 3 instead of 1, so that women and men of the same hours exist, and the order
of columns stops to matter: what is left is the 10 that is due to hours, less what boosting has
not learnt yet. By default there are 5 samples of each kind; ``--full`` draws 100. (The paper
weighted by the covers of the trees and not by the people, which makes no difference here.)

::

    python examples/papers/plot_glex_removal.py
    python examples/papers/plot_glex_removal.py --full
"""

import argparse

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xgboost

from fastpd_sklearn.decomposition import FeatureRemover

PAPER = {"full": 29.79, "refitted": 29.79, "decomposed": 10.57}
# Standard deviation of the hours, and the order of the columns; the first is the paper's.
SETTINGS = [
    (1, ("sex", "hours")),
    (1, ("hours", "sex")),
    (3, ("sex", "hours")),
    (3, ("hours", "sex")),
]


def main() -> None:
    """Sample, fit, remove, print and draw."""
    parser = argparse.ArgumentParser(description="The functional decomposition, Figure 5")
    parser.add_argument("--full", action="store_true", help="100 samples")
    n_samples = 100 if parser.parse_args().full else 5
    samples = {
        setting: [predictions(seed, *setting) for seed in range(n_samples)] for setting in SETTINGS
    }
    print("median prediction for men less that for women (in truth 30, and 10 for hours alone)")
    print(f"median and range of {n_samples} samples")
    for setting, found in samples.items():
        print_differences(setting, pd.DataFrame([median_differences(*sample) for sample in found]))
    draw(samples)
    print("\nglex_figure_5.png")


def print_differences(setting, differences) -> None:
    """A block of the table: each model's difference, in one setting."""
    spread, columns = setting
    print(f"\nhours spread by {spread}, columns {' and '.join(columns)}")
    for name, values in differences.items():
        ours = f"ours: {values.median():5.2f} ({values.min():.2f} to {values.max():.2f})"
        paper = f"paper: {PAPER[name]:.2f}" if setting == SETTINGS[0] else ""
        print(f"{name:12s} {ours:30s} {paper}".rstrip())


def predictions(seed: int, spread: float, columns) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Who of the tested people is male, and what each model predicts for them."""
    rng = np.random.default_rng(seed)
    n = 10_000
    male = rng.integers(0, 2, n)
    people = pd.DataFrame({"sex": male, "hours": 30 + 10 * male + spread * rng.normal(size=n)})
    salary = 20 * people["sex"] + people["hours"] + rng.normal(size=n)
    people = people[list(columns)]
    train, test = people[: 2 * n // 3], people[2 * n // 3 :]
    full = new_model().fit(train, salary[: len(train)])
    refitted = new_model().fit(train[["hours"]], salary[: len(train)])
    return test["sex"].to_numpy() == 1, {
        "full": full.predict(test),
        "refitted": refitted.predict(test[["hours"]]),
        "decomposed": FeatureRemover(features=["sex"]).fit(full, test).predict(test),
    }


def new_model() -> xgboost.XGBRegressor:
    """The paper's model, with what were the defaults of XGBoost at the time."""
    return xgboost.XGBRegressor(
        n_estimators=50,
        max_depth=4,
        learning_rate=0.1,
        base_score=0.5,
        tree_method="exact",
        n_jobs=1,
    )


def median_differences(male, predicted) -> dict[str, float]:
    """Men less women, of each model."""
    return {
        name: float(np.median(values[male]) - np.median(values[~male]))
        for name, values in predicted.items()
    }


def draw(samples) -> None:
    """Box plots of women and men for each model: the paper's simulation, and with overlap."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    for ax, setting in zip(axes, (SETTINGS[0], SETTINGS[2]), strict=True):
        boxes(ax, *samples[setting][0])
        ax.set_title(f"hours spread by {setting[0]}", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("predicted salary")
    axes[1].legend(frameon=False, loc="upper right")
    figure.suptitle("Figure 5: sex in the model, left out, and taken out after the fit")
    figure.savefig("glex_figure_5.png", dpi=130)


def boxes(ax, male, predicted) -> None:
    """One sample."""
    sexes = {"women": (~male, -0.18, "#E69F00"), "men": (male, 0.18, "#0072B2")}
    for label, (who, shift, colour) in sexes.items():
        drawn = ax.boxplot(
            [values[who] for values in predicted.values()],
            positions=np.arange(3) + shift,
            widths=0.3,
            patch_artist=True,
            showfliers=False,
            label=label,
            medianprops={"color": "black"},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, alpha=0.7)
    gap = median_differences(male, predicted)
    ax.set_xticks(range(3), [f"{name}\ndifference {gap[name]:.1f}" for name in predicted])


if __name__ == "__main__":
    main()
