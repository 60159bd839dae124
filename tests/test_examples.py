"""The examples run, say what they promise and draw it."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """Folder and printed text of a run."""
    folder = tmp_path_factory.mktemp("quickstart")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


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
