"""The example of a vote runs, and shows what it says that it shows."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image


def test_the_example_of_a_vote(tmp_path):
    script = Path(__file__).parents[1] / "examples" / "plot_vote.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"mean of its members', up to (\S+)", done.stdout)[1]) < 1e-3
    rows = re.findall(r"^(\w+) +([\d.]+) +([\d.]+)$", done.stdout, re.MULTILINE)
    assert len(rows) == 10
    spread = [float(row[2]) for row in rows]
    assert spread == sorted(spread, reverse=True)
    picture = matplotlib.image.imread(tmp_path / "vote.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.1
