"""The example of a planted forest runs, and finds the components that made the data."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image


def test_the_example_of_a_planted_forest(tmp_path):
    script = Path(__file__).parents[1] / "examples" / "plot_planted_forest.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"= prediction, up to (\S+)", done.stdout)[1]) < 1e-10
    rows = re.findall(r"^(x[\dx:]+) +([\d.]+) +(?:([\d.]+)|\(is zero\))$", done.stdout, re.M)
    close = {name: float(r2) for name, _, r2 in rows if r2}
    assert [name for name, *_ in rows[:3]] == list(close)
    assert set(close) == {"x0", "x1", "x0:x2"}
    assert min(close.values()) > 0.95
    assert all(float(size) < 0.1 for _, size, _ in rows[3:])
    picture = matplotlib.image.imread(tmp_path / "planted_forest.png")
    assert picture.shape[1] > 1000
    assert picture.std() > 0.1
