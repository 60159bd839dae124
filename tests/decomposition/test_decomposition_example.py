"""The example about the decomposition says what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image

ROOT = Path(__file__).parents[2]


def test_the_example(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "plot_decomposition.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    terms = done.stdout.partition("Orders")[0]
    assert re.findall(r"^ *(hour\S*) ", terms, re.M)[:2] == ["hour", "hour:workday"]
    pairs = done.stdout.partition("Pairs by H")[2].splitlines()[2:]
    assert {line.split()[0] for line in pairs[:2]} == {"hour:workday", "workday:temperature"}
    shares = done.stdout.partition("Orders")[2].partition("Features")[0].splitlines()[2:]
    total = sum(float(line.split()[-1]) for line in shares if line.strip())
    assert abs(total - 1) < 0.005
    assert matplotlib.image.imread(tmp_path / "plot_decomposition.png").std() > 0.1
    assert (ROOT / "doc" / "images" / "decomposition.png").exists()
