"""The example on removal says what it promises and draws it."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image

SCRIPT = Path(__file__).parents[2] / "examples" / "plot_removal.py"


def test_example(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    full, removed, refitted = (
        float(re.search(rf"^{name} +(\S+)$", done.stdout, re.M)[1])
        for name in ("fitted with sex", "sex averaged out", "fitted without sex")
    )
    assert abs(full - 4) < 0.3
    assert abs(removed) < 0.1
    assert refitted > 1.5
    picture = matplotlib.image.imread(tmp_path / "removal.png")
    assert picture.shape[1] > 1000
    assert picture.std() > 0.1
