"""What the scripts of the gallery say is true of what they compute."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
import matplotlib
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, n_figures):
    """The names that a script has left, after a look at what it has drawn."""
    matplotlib.use("Agg")
    plt.close("all")
    found = runpy.run_path(str(EXAMPLES / name))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert len(figures) == n_figures
    for figure in figures:
        figure.canvas.draw()
        assert np.asarray(figure.canvas.buffer_rgba())[..., :3].std() > 10
        assert any(ax.get_title(loc="left") for ax in figure.axes)
    plt.close("all")
    return found


def test_a_grid_steps_over_a_narrow_spike():
    found = run("plot_narrow_spike.py", 1)
    assert found["on_grid"].max() < 0.4 * found["exact"].max()
    assert abs(found["start"] - 1511) < 1.5
    assert abs(found["end"] - 1527) < 1.5
    np.testing.assert_allclose(found["curve"](found["grid"])[0], found["on_grid"], atol=1e-10)


def test_an_unpruned_forest_is_explained_and_nearer_to_the_truth(capsys):
    found = run("plot_deep_forest.py", 1)
    deep = max(tree.get_depth() for tree in found["forests"]["unpruned"].estimators_)
    assert deep > 20
    assert found["error"] < 1e-10  # of the unpruned forest, which comes last
    lines = [line for line in capsys.readouterr().out.splitlines() if "x4 moves" in line]
    pruned, unpruned = (float(line.split()[-3]) for line in lines)
    assert pruned < 2.5 < 3.3 < unpruned


def test_a_hundred_rows_of_a_background_are_few():
    found = run("plot_large_background.py", 1)
    errors = np.median(found["errors"], axis=1)
    assert np.all(np.diff(errors) < 0)
    assert errors[0] / errors[-1] > 5  # a hundred times the rows, a tenth of the error
    assert found["changed"][found["sizes"].index(100)] > 0.03
    assert found["seconds"] < 20


def test_a_loan_is_decided_without_age_and_with_reasons():
    found = run("plot_credit.py", 2)
    terms = found["table"]["term"].tolist()
    assert "debt ratio:late payments" in terms[:4]
    without = found["roc_auc_score"](found["new_defaults"], found["fair_risk"])
    assert abs(without - found["auc"]) < 0.01
    assert found["profit"][found["best"]] > 3 * 1000 * found["gain"].mean()
    np.testing.assert_allclose(
        found["decided"], found["fair"].decision_function(found["new"]), atol=1e-10
    )
    assert not found["told"]["term"].str.contains("age").any()
    at_40 = found["joint"][:, np.searchsorted(found["ratio"], 0.45)]
    below = found["joint"][:, np.searchsorted(found["ratio"], 0.25)]
    assert np.ptp(at_40) > 1.5 > 3 * np.ptp(below)


def test_each_wine_has_a_measurement_of_its_own():
    found = run("plot_multiclass.py", 2)
    assert len(set(found["size"].argmax(axis=0))) == 3
    np.testing.assert_allclose(found["probability"].sum(axis=0), 1, atol=1e-12)
    moved = dict(zip(found["names"], np.ptp(found["probability"], axis=1), strict=True))
    assert moved["Barbera"] < 0.05
    assert min(moved["Barolo"], moved["Grignolino"]) > 0.3


def test_shap_draws_our_values():
    pytest.importorskip("shap")
    found = run("plot_shap_plots.py", 3)
    assert abs(found["end"] - found["margin"][found["patient"]]) < 1e-10
    assert found["difference"] < 1e-10
    assert found["explanation"].feature_names[
        np.abs(found["explanation"].values).mean(axis=0).argmax()
    ] == ("worst perimeter")
