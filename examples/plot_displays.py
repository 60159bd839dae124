"""
Draw what a model does, from single features to single patients
===============================================================

Ten measurements of 442 patients predict how far their diabetes has progressed a year later, and
thirteen of 178 wines tell which of three growers made them. The script fits XGBoost to both and
draws six displays: main effects, interactions of two and of three features, importances, one
patient, and the three growers side by side. Each has a picture of its own.

::

    python examples/plot_displays.py
"""

import matplotlib

matplotlib.use("Agg")

from sklearn.datasets import load_diabetes, load_wine
from xgboost import XGBClassifier, XGBRegressor

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import (
    ImportanceDisplay,
    InteractionDisplay,
    MainEffectDisplay,
    ThreeWayDisplay,
    WaterfallDisplay,
)

NAMES = {
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}


def main() -> None:
    """Fit, and draw all displays."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X = X.rename(columns=NAMES)
    model = XGBRegressor(n_estimators=200, max_depth=3, learning_rate=0.05, random_state=0)
    model.fit(X, y)
    draw_effects(model, X)
    draw_patient(model, X)
    draw_growers()


def draw_effects(model, X) -> None:
    """Main effects, interactions and importances, each of the strongest."""
    save(MainEffectDisplay.from_estimator(model, X, max_panels=6), "main_effects")

    # One explainer serves several displays: it is fitted once.
    components = FastPDExplainer(output="component", max_order=3).fit(model, X)
    strongest = InteractionDisplay.from_explainer(components, X, max_panels=3, n_cols=3)
    save(strongest, "interactions")
    save(ThreeWayDisplay.from_explainer(components, X, n_slices=3), "three_way")
    terms = ImportanceDisplay.from_explainer(components, X, by="term", max_bars=15)
    save(terms, "importance")
    orders = ImportanceDisplay.from_explainer(components, X, by="order")
    print("mean absolute contribution, added up over")
    for (name,), size in zip(orders.terms, orders.importances[:, 0], strict=True):
        print(f"  {name:<20}{size:>8.1f}")


def draw_patient(model, X) -> None:
    """From the mean prediction to that of the patient with the highest one."""
    highest = int(model.predict(X).argmax())
    save(WaterfallDisplay.from_estimator(model, X, row=highest), "waterfall")


def draw_growers() -> None:
    """A line for each class."""
    X, grower = load_wine(return_X_y=True, as_frame=True)
    model = XGBClassifier(n_estimators=50, max_depth=3, learning_rate=0.1, random_state=0)
    model.fit(X, grower)
    save(MainEffectDisplay.from_estimator(model, X, max_panels=3), "classes")


def save(display, name: str) -> None:
    """Write a display to a file."""
    display.figure_.savefig(f"{name}.png", dpi=100)
    print(f"{name}.png")


if __name__ == "__main__":
    main()
