"""The page of the documentation and the example keep their word."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

ROOT = Path(__file__).parents[2]


def test_page():
    path = ROOT / "doc" / "model_selection.rst"
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.attempted > 15
    assert result.failed == 0


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Folder and printed text of a run."""
    folder = tmp_path_factory.mktemp("grid_search")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "plot_grid_search.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_example_tells_stumps_from_deep_trees(example):
    rows = [line.split() for line in example[1].splitlines()[1:7]]
    shares = {1: [], 3: [], 5: []}
    for _, depth, r2, interactions, *_ in rows:
        assert -1 < float(r2) < 1
        shares[int(depth)].append(float(interactions))
    assert shares[1] == [0.0] * 2
    assert max(shares[3]) < max(shares[5])


def test_example_draws(example):
    assert re.search(r"^ +bmi +\d", example[1], re.M)
    picture = matplotlib.image.imread(example[0] / "grid_search.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.1
