"""
Forests as they come: unpruned, and explained exactly
=====================================================

A random forest of scikit-learn grows its trees until their leaves are pure: dozens of levels, and
thousands of leaves a tree. Methods whose cost grows with the square or the power of the depth ask
for pruned trees, and the pruned forest is another model. Here both are explained exactly, over all
rows that they were trained on, and compared with the truth.
"""

# %%
# A known function, and two forests
# ---------------------------------
# Friedman's function is ``10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4``, with noise.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from fastpd_sklearn import FastPDExplainer

X, y = make_friedman1(3000, n_features=6, noise=1.0, random_state=0)
forests = {
    "depth 4": RandomForestRegressor(50, max_depth=4, n_jobs=2, random_state=0).fit(X, y),
    "unpruned": RandomForestRegressor(50, n_jobs=2, random_state=0).fit(X, y),
}

# %%
# SHAP values over the whole of the background
# --------------------------------------------
# They add up to the predictions of the unpruned forest, too.

for name, forest in forests.items():
    depth = max(tree.get_depth() for tree in forest.estimators_)
    leaves = sum(tree.get_n_leaves() for tree in forest.estimators_)
    start = perf_counter()
    explainer = FastPDExplainer(output="shap").fit(forest, X)
    phi = explainer.transform(X[:500])
    seconds = perf_counter() - start
    error = np.abs(explainer.intercept_ + phi.sum(axis=1) - forest.predict(X[:500])).max()
    print(
        f"{name}: depth {depth}, {leaves} leaves, 500 rows over {len(X)} in {seconds:.1f} s, "
        f"sum = prediction up to {error:.0e}"
    )

# %%
# What pruning does to the model
# ------------------------------
# The main effect of ``x4`` is a line in truth. The pruned forest has few splits left for it;
# the unpruned one has learnt it. An explanation of the pruned forest would say that ``x4`` matters
# less than half as much, and this would be true of that forest alone.

figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
grid = np.linspace(0.01, 0.99, 400)
colours = {"depth 4": "#D55E00", "unpruned": "#0072B2"}
for name, forest in forests.items():
    explainer = FastPDExplainer().fit(forest, X)
    curve = explainer.partial_dependence(4).curve
    level = curve(grid)[0] - curve(X[:, 4])[0].mean()
    ax.plot(grid, level, color=colours[name], linewidth=2, label=f"{name} forest")
    print(f"{name}: x4 moves the prediction by {level.max() - level.min():.1f} of 5")
ax.plot(grid, 5 * (grid - 0.5), color="black", linestyle="--", linewidth=1, label="truth")
ax.set_xlabel("x4")
ax.set_ylabel("main effect on the prediction")
ax.set_title("Pruned to be explained, a forest forgets its weaker features", loc="left")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
