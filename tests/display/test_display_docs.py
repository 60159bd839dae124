"""The page about displays and their example keep their word."""

import doctest
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

ROOT = Path(__file__).parents[2]


def test_the_page():
    page = ROOT / "doc" / "displays.rst"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 15
    assert result.failed == 0


def test_the_pictures_of_the_page_are_there():
    page = (ROOT / "doc" / "displays.rst").read_text(encoding="utf-8")
    pictures = [line.split()[-1] for line in page.splitlines() if line.startswith(".. image::")]
    assert len(pictures) == 6
    for picture in pictures:
        assert (ROOT / "doc" / picture).exists()


def test_the_example(tmp_path):
    pytest.importorskip("xgboost")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "plot_displays.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    drawn = [line for line in done.stdout.splitlines() if line.endswith(".png")]
    assert len(drawn) == 6
    for name in drawn:
        assert (ROOT / "doc" / "images" / f"displays_{name}").exists()
        assert matplotlib.image.imread(tmp_path / name).std() > 0.1
    orders = [float(line.split()[-1]) for line in done.stdout.splitlines() if "s  " in line]
    assert len(orders) == 3
    assert orders == sorted(orders, reverse=True)
