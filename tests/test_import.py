"""What an import says where it cannot succeed."""

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "fastpd_sklearn"


def test_a_source_tree_without_extensions_says_so(tmp_path):
    built = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "fastpd_sklearn", ignore=built)
    done = subprocess.run(
        [sys.executable, "-c", "import fastpd_sklearn"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / 'fastpd_sklearn'} is fastpd_sklearn's source")
    assert "run from another folder" in last
    assert "python setup.py build_ext --inplace" in last
