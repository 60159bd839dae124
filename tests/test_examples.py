"""The examples run, say what they promise and draw it."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script, folder):
    """What an example prints, run in a folder of its own."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """Folder and printed text of a run."""
    folder = tmp_path_factory.mktemp("quickstart")
    printed = run("quickstart.py", folder)
    return folder, printed


def test_quickstart_names_the_strongest_features_first(quickstart):
    lines = quickstart[1].partition("mean |SHAP|")[2].partition("strongest of")[0].splitlines()
    size = [float(line.split()[-2]) for line in lines[1:] if line]
    assert len(size) == 10
    assert size == sorted(size, reverse=True)
    assert "triglycerides" in lines[1]
    assert "body mass index" in lines[2]


def test_quickstart_adds_up(quickstart):
    error = float(re.search(r"= prediction, up to (\S+)", quickstart[1])[1])
    assert error < 1e-3  # of predictions around 150, summed in float32


def test_quickstart_draws(quickstart):
    picture = matplotlib.image.imread(quickstart[0] / "quickstart.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.1


def test_ale_tells_what_happens_where_the_data_are(tmp_path):
    printed = run("plot_pd_ale_correlated.py", tmp_path)
    error = {
        name: np.array(re.search(rf"^{name} +(\S+) +(\S+)$", printed, re.M).groups(), float)
        for name in ("ALE", "PD", "path-dependent PD")
    }
    assert np.all(error["ALE"] < 0.02)
    assert np.all(error["PD"] > 0.2)
    assert np.all(error["path-dependent PD"] > 0.2)
    picture = matplotlib.image.imread(tmp_path / "plot_pd_ale_correlated.png")
    assert picture.shape[1] > 1000
    assert picture.std() > 0.1


def test_linear_leaves_find_the_slopes(tmp_path):
    printed = run("plot_linear_leaves.py", tmp_path)
    error = {
        name: float(re.search(rf"^{name} +error of the curve: (\S+)", printed, re.M)[1])
        for name in ("constant leaves", "linear leaves")
    }
    assert error["linear leaves"] < error["constant leaves"]
    heating, between, cooling = re.findall(r"degrees: (\S+) kWh a degree", printed)
    assert -1.8 < float(heating) < -1.4
    assert abs(float(between)) < 0.3
    assert 1.2 < float(cooling) < 1.6
    picture = matplotlib.image.imread(tmp_path / "plot_linear_leaves.png")
    assert picture.shape[1] > 900
    assert picture.std() > 0.1


def test_bands_cover_the_curve_of_the_population(tmp_path):
    printed = run("plot_uncertainty.py", tmp_path)
    lines = [line.split() for line in printed.splitlines()]
    table = np.array([line for line in lines if len(line) == 4 and line[0].isdigit()], float)
    rows, claimed, real, covered = table.T
    assert list(rows) == [50, 200, 800, 3200]
    assert np.all(np.abs(np.log(claimed / real)) < 0.4)
    assert np.all(covered > 0.85)
    picture = matplotlib.image.imread(tmp_path / "plot_uncertainty.png")
    assert picture.shape[1] > 1000
    assert picture.std() > 0.1
