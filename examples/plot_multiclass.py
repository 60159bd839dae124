"""
Three classes: what sorts the wines
===================================

A boosted classifier of three cultivars by thirteen measurements has three margins, one a cultivar,
and probabilities that add up to one. Margins add up over trees, and so do their explanations.
Probabilities have exact partial dependence, too, and there the three curves of a feature share out
the whole at every value.
"""

# %%
# Three cultivars
# ---------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier

from fastpd_sklearn import FastPDExplainer

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, y)

# %%
# Which measurement tells which cultivar?
# ---------------------------------------
# SHAP values of the margins have a last axis of classes. Their mean absolute value, by feature and
# class:

explainer = FastPDExplainer(output="shap").fit(model, X)
explanation = explainer.explain(X)
size = explanation.mean_abs()
print("values:", explanation.values.shape, "outputs:", explanation.output_names)
for k, name in enumerate(explanation.output_names):
    strongest = explanation.feature_names[size[:, k].argmax()]
    print(f"{name:10s} is told by {strongest}")

order = np.argsort(-size.sum(axis=1))[:6]
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
colours = {"Barbera": "#882255", "Barolo": "#DDAA33", "Grignolino": "#44AA99"}
for k, name in enumerate(explanation.output_names):
    place = np.arange(len(order)) + 0.27 * (k - 1)
    ax.barh(place, size[order, k], height=0.24, color=colours[name], label=name)
ax.set_yticks(range(len(order)), [explanation.feature_names[j] for j in order])
ax.invert_yaxis()
ax.set_xlabel("mean |SHAP value| of the margin [log odds]")
ax.set_title("Each cultivar has a measurement of its own", loc="left")
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Probabilities
# -------------
# ``response_method="predict_proba"`` averages the probabilities themselves. At every value of
# proline the three of them add up to one.

of_probability = FastPDExplainer(response_method="predict_proba").fit(model, X)
curve = of_probability.partial_dependence("proline").curve
grid = np.linspace(X["proline"].min(), X["proline"].max(), 500)
probability = curve(grid)
print(f"sums of the three curves: 1 up to {np.abs(probability.sum(axis=0) - 1).max():.0e}")
for name, part in zip(of_probability.classes_, probability, strict=True):
    print(f"proline moves the probability of {name} by {np.ptp(part):.2f}")

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
names = [str(name) for name in of_probability.classes_]
ax.stackplot(grid, probability, colors=[colours[name] for name in names], step="mid")
middle = np.cumsum(probability, axis=0) - probability / 2
for name, height, column in zip(names, middle, (60, 440, 150), strict=True):
    ax.text(grid[column], height[column], name, color="white", va="center", ha="center")
ax.set_xlim(grid[0], grid[-1])
ax.set_ylim(0, 1)
ax.set_xlabel("proline [mg/l]")
ax.set_ylabel("mean probability")
ax.set_title("Proline trades Grignolino for Barolo, and leaves Barbera alone", loc="left")
plt.show()
