"""The README keeps its word."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("error")
def test_the_python_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    plt.close("all")


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()


def test_the_continuous_integration_runs_the_test_command():
    pattern = re.search(r"grep -E '(.+?)' README.md", (ROOT / ".ci/run").read_text())[1]
    commands = re.findall(pattern, README, re.M)
    assert len(commands) == 1
