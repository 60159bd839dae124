"""
A random planted forest, and its components purified
====================================================

A planted forest is a sum of boxes over few features each. The script grows one on simulated data
with a few lines of NumPy, hands it over by ``Forest.from_boxes``, and takes it apart. What the
boxes over one feature add up to is not that feature's main effect, since boxes over two features
have main effects, too; the components have these where they belong. It prints how close they are
to the components of the function that made the data, and draws them to ``planted_forest.png``.

::

    python examples/plot_planted_forest.py
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.forest import Forest

N_ROWS, N_COLUMNS, N_FAMILIES, N_SPLITS, N_TRIES = 1000, 4, 20, 60, 20
SMALLEST = 5  # rows in a box

# The columns are uniform and independent, so that these are the components of their sum.
TRUTH = {
    ("x0",): lambda X: 1.5 * np.sin(2 * np.pi * X[:, 0]),
    ("x1",): lambda X: 8 * ((X[:, 1] - 0.5) ** 2 - 1 / 12),
    ("x0", "x2"): lambda X: 12 * (X[:, 0] - 0.5) * (X[:, 2] - 0.5),
}
BLUE, ORANGE = "#0072B2", "#D55E00"


def grow_family(X, y, rng):
    """Boxes over at most two features, each split where it explains most of what is left."""
    rows = rng.integers(len(X), size=len(X))
    X, rest = X[rows], y[rows] - y.mean()
    boxes = [(np.full(N_COLUMNS, -np.inf), np.full(N_COLUMNS, np.inf), y.mean())]
    for _ in range(N_SPLITS):
        tried = [try_split(boxes, X, rest, rng) for _ in range(N_TRIES)]
        gain, b, column, parts = max(tried, key=lambda split: split[0])
        if gain <= 0:
            continue
        lower, upper, value = boxes[b]
        stays = bounded(lower, upper)[column]  # else the box is the parent of a new tree's boxes
        for within, low, high in parts:
            mean = rest[within].mean()
            rest[within] -= mean
            boxes.append((low, high, mean + value * stays))
        if stays:
            boxes.pop(b)
    return boxes


def try_split(boxes, rows, rest, rng):
    """A random split of a random box: what it gains, and the two parts."""
    b, column = rng.integers(len(boxes)), rng.integers(N_COLUMNS)
    lower, upper, _ = boxes[b]
    features = bounded(lower, upper)
    features[column] = True
    inside = np.all((lower <= rows) & (rows < upper), axis=1)
    if features.sum() > 2 or inside.sum() < 2 * SMALLEST:
        return 0.0, b, column, ()
    cut = rng.choice(rows[inside, column])
    low, high = lower.copy(), upper.copy()
    low[column] = high[column] = cut
    parts = [(inside & (rows[:, column] < cut), lower, high)]
    parts += [(inside & (rows[:, column] >= cut), low, upper)]
    if min(within.sum() for within, *_ in parts) < SMALLEST:
        return 0.0, b, column, ()
    return sum(rest[within].sum() ** 2 / within.sum() for within, *_ in parts), b, column, parts


def bounded(lower, upper):
    """Which features a box bounds."""
    return (lower > -np.inf) | (upper < np.inf)


def main() -> None:
    """Simulate, grow, explain, print and draw."""
    rng = np.random.default_rng(0)
    X = rng.random((N_ROWS, N_COLUMNS))
    y = 3 + sum(part(X) for part in TRUTH.values()) + rng.normal(scale=0.3, size=N_ROWS)
    boxes = [box for _ in range(N_FAMILIES) for box in grow_family(X, y, rng)]
    lower, upper, value = (np.array(part) for part in zip(*boxes, strict=True))
    value = value / N_FAMILIES  # the forest is the mean of its families
    forest = Forest.from_boxes(lower, upper, value)

    explainer = FastPDExplainer(output="component", max_order=None).fit(forest, X)
    explanation = explainer.explain(X)
    total = explainer.intercept_ + explainer.transform(X).sum(axis=1)
    print(f"{len(boxes)} boxes; R² of the forest: {r2(forest.predict(X), y):.2f}")
    error = np.abs(total - forest.predict(X)).max()
    print(f"intercept + components = prediction, up to {error:.1e}\n")
    print_table(explanation, X)
    alone = bounded(lower, upper)
    alone = alone[:, 0] & (alone.sum(axis=1) == 1)
    raw = Forest.from_boxes(lower[alone], upper[alone], value[alone])
    draw(explainer, explanation, raw, X)


def r2(estimate, truth) -> float:
    """Share of the truth's variance that an estimate explains."""
    return 1 - np.mean((estimate - truth) ** 2) / np.var(truth)


def print_table(explanation, X) -> None:
    """The largest components, and how close they are to the truth."""
    size = {term: np.std(explanation[term]) for term in explanation.terms}
    print(f"{'component':<12}{'std':>6}{'R² to the truth':>18}")
    for term in sorted(size, key=size.get, reverse=True):
        close = f"{r2(explanation[term], TRUTH[term](X)):.2f}" if term in TRUTH else "(is zero)"
        print(f"{':'.join(term):<12}{size[term]:>6.2f}{close:>18}")


def draw(explainer, explanation, raw, X) -> None:
    """Two main effects and the interaction, with their truth."""
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.5), layout="constrained")
    for axis, column in zip(axes[:2], (0, 1), strict=True):
        order = np.argsort(X[:, column])
        x, name = X[order, column], f"x{column}"
        axis.plot(x, TRUTH[name,](X)[order], color="0.6", linewidth=4, label="truth")
        axis.step(x, explanation[name][order], color=BLUE, linewidth=1.4, label="component")
        if column == 0:
            sums = raw.predict(np.pad(X[:, :1], ((0, 0), (0, N_COLUMNS - 1))))
            sums = (sums - sums.mean())[order]
            axis.step(x, sums, color=ORANGE, linewidth=1, label="boxes over x0 alone")
        axis.set(xlabel=name, ylabel="effect" if column == 0 else None, ylim=(-2.6, 2.6))
        axis.set_title(f"main effect of {name}", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
                  frameon=False)  # fmt: skip

    points = (np.arange(60) + 0.5) / 60
    grid = np.full((60 * 60, N_COLUMNS), 0.5)
    grid[:, 0], grid[:, 2] = (part.ravel() for part in np.meshgrid(points, points))
    pairs = {"component": explainer.explain(grid)["x0", "x2"], "truth": TRUTH["x0", "x2"](grid)}
    for axis, (kind, effect) in zip(axes[2:], pairs.items(), strict=True):
        image = axis.imshow(effect.reshape(60, 60), extent=(0, 1, 0, 1), origin="lower",
                            cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")  # fmt: skip
        axis.set(xlabel="x0", ylabel="x2" if kind == "component" else None)
        axis.set_title(f"interaction, {kind}", fontsize=10)
    figure.colorbar(image, ax=axes[2:], label="effect")
    figure.savefig("planted_forest.png", dpi=110)
    print("\nDrawn in planted_forest.png")


if __name__ == "__main__":
    main()
