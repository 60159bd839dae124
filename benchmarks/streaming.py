"""``python -m benchmarks.streaming``: backgrounds from a Parquet file, each in its own process."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

N_COLUMNS = 50
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
CHUNK_ROWS = 200_000
EXPLAINERS = ("FastPDExplainer", "ICEExplainer", "ALEExplainer")


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the background")
    parser.add_argument("--explainers", nargs="+", default=EXPLAINERS)
    parser.add_argument("--file", type=Path, help="where it is, or is to be; else a temporary one")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def write_rows(path: Path, n_rows: int) -> None:
    """Normal numbers as float32, 200 bytes a row."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n_rows, CHUNK_ROWS):
            size = min(CHUNK_ROWS, n_rows - start)
            columns = rng.standard_normal((N_COLUMNS, size), dtype=np.float32)
            writer.write_table(pa.table(list(columns), schema=schema))


def measure(name: str, path: Path) -> None:
    """Fit one explainer, and print CPU seconds and MiB beyond what was there before."""
    from xgboost import XGBRegressor

    import fastpd_sklearn

    X = np.random.default_rng(1).standard_normal((20_000, N_COLUMNS), dtype=np.float32)
    model = XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1)
    model.fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    model.get_booster().feature_names = NAMES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = process_time()
    getattr(fastpd_sklearn, name)(n_jobs=1).fit(model, path)
    seconds = process_time() - started
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name:20} {seconds:8.1f} s {memory:8.0f} MiB", flush=True)


def main(arguments=None) -> None:
    args = parse(arguments)
    if args.only:
        measure(args.only, args.file)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "rows.parquet"
        if not path.exists():
            write_rows(path, args.rows)
        print(f"{args.rows:,} rows of {N_COLUMNS} columns, {path.stat().st_size / 1e9:.1f} GB")
        for name in args.explainers:
            command = [sys.executable, "-m", "benchmarks.streaming", "--only", name]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run([*command, "--file", str(path)], check=True, env=environment)


if __name__ == "__main__":
    main()
