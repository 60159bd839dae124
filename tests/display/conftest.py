"""Data and models of the figures, and the truth about them."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

from tests import oracles  # noqa: E402


@pytest.fixture(autouse=True)
def pyplot():
    """A backend without windows; figures are closed afterwards."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="session")
def X():
    """Two columns of many values, one of four and one of two; nobody may change them."""
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [
            rng.normal(size=60),
            rng.integers(0, 40, 60),
            rng.integers(0, 4, 60) * 1.5,
            rng.integers(0, 2, 60),
        ]
    )
    rows.flags.writeable = False
    return rows


@pytest.fixture(scope="session")
def y(X):
    return X[:, 0] * X[:, 1] / 10 + X[:, 2] * (X[:, 3] + X[:, 0]) + X[:, 3]


@pytest.fixture(scope="session")
def model(X, y):
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=4, max_depth=4, random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def labels(y):
    return np.array(["high", "low", "mid"])[np.digitize(y, [-1.0, 3.0])]


@pytest.fixture(scope="session")
def classifier(X, labels):
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=4, max_depth=4, random_state=0).fit(X, labels)


@pytest.fixture(scope="session")
def many():
    """Thirty columns with long names that differ in the middle only, and a model of them."""
    pd = pytest.importorskip("pandas")
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(1)
    names = [
        f"a very long name of a measurement, number {k:02} of all, in mg/dl" for k in range(30)
    ]
    X = pd.DataFrame(rng.normal(size=(200, 30)), columns=names)
    values = X.to_numpy()
    y = values @ (1.0 / (1 + np.arange(30))) + values[:, 0] * values[:, 1] * values[:, 2]
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=6, min_samples_leaf=5)
    return X, model.fit(X, y)


@pytest.fixture(scope="session")
def truth():
    """Components by their definition, from the model's own predictions."""

    def component(predict, background, columns, values, weights=None):
        """``m_S`` of the columns at rows of ``values``, shape (n_rows, n_outputs)."""
        background = np.asarray(background)
        rows = np.tile(background[:1], (len(values), 1))
        rows[:, columns] = values
        players = [[column] for column in columns]
        game = oracles.interventional_game(predict, background, weights, rows, players)
        return oracles.derivative(game, tuple(range(len(columns))))

    return component


@pytest.fixture(scope="session")
def assert_legible():
    """Draws a figure and fails if words lie over each other or leave it."""

    def check(figure):
        figure.canvas.draw()
        within = figure.bbox
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                words = [tick.label1 for tick in ticks]
                shown = [text for text in words if text.get_text() and text.get_visible()]
                boxes = [text.get_window_extent() for text in shown]
                boxes += [axis.label.get_window_extent()] if axis.label.get_text() else []
                for i, box in enumerate(boxes):
                    assert within.x0 - 1 <= box.x0 <= box.x1 <= within.x1 + 1, shown
                    assert within.y0 - 1 <= box.y0 <= box.y1 <= within.y1 + 1, shown
                    for other in boxes[:i]:
                        assert not overlap(box, other), [text.get_text() for text in shown]
            for text in axes.texts:
                box = text.get_window_extent()
                assert within.x0 <= box.x0 <= box.x1 <= within.x1, text
        return figure

    return check


def overlap(one, other):
    """Whether two boxes share more than a pixel; those of turned words say too much."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return width > 1 and height > 1
