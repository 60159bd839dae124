"""The page on pipelines and its example run and say what they promise."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

ROOT = Path(__file__).parents[1]


def test_page():
    pytest.importorskip("pandas")
    path = str(ROOT / "doc" / "pipelines.rst")
    flags = doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(path, module_relative=False, optionflags=flags, encoding="utf-8")
    assert result.attempted > 30
    assert result.failed == 0


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Folder and printed text of a run."""
    folder = tmp_path_factory.mktemp("raw_columns")
    script = ROOT / "examples" / "raw_columns.py"
    done = subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_example_is_about_raw_columns(example):
    table = example[1].partition("mean |SHAP|")[2].partition("Mean wage")[0].split()
    assert table[::2] == ["occupation", "education", "age", "hours", "region"]
    assert float(re.search(r"= prediction, up to (\S+)", example[1])[1]) < 1e-10


def test_example_draws(example):
    picture = matplotlib.image.imread(example[0] / "raw_columns.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.1
