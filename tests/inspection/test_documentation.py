"""The page and the example of inspection say what is true."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

ROOT = Path(__file__).parents[2]


def test_page():
    path = ROOT / "doc" / "inspection.rst"
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.attempted > 8
    assert result.failed == 0


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspection")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "inspection.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_example_agrees_with_brute_force(example):
    rows = re.findall(r"method='(\w+)' +[\d.]+ +([-\d.]+) +([-\d.]+)", example[1])
    assert [method for method, *_ in rows] == ["auto", "brute", "auto"]
    assert rows[0][1:] == rows[1][1:]


def test_example_draws(example):
    picture = matplotlib.image.imread(example[0] / "inspection.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.1
