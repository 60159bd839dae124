"""``python -m benchmarks``: measure, compare, and write a table and a plot."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.cases import Case, cached_model, cached_rows
from benchmarks.measure import Measurement
from benchmarks.report import Report
from benchmarks.tasks import OURS, TASKS, Task, takes_part

ROOT = Path(__file__).resolve().parents[1]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the tasks against model.predict and other packages. Rows, models "
        "and columns select among the cases of each task.",
    )
    names = [task.name for task in TASKS]
    parser.add_argument("--tasks", nargs="+", choices=names, metavar="TASK", default=names)
    parser.add_argument("--models", nargs="+", help="such as xgb_6 lgb_31 lgb_255 hgb_6 rf_10")
    parser.add_argument("--columns", nargs="+", type=int)
    parser.add_argument("--max-rows", type=int, default=10**9)
    parser.add_argument("--min-rows", type=int, default=0)
    parser.add_argument(
        "--threads", type=int, default=2, help="but for tasks that compare numbers of them"
    )
    parser.add_argument("--peers", nargs="*", help="packages to compare with; default: all")
    parser.add_argument("--quick", action="store_true", help="the main tasks at their smallest")
    parser.add_argument("--patience", type=float, help="seconds of repetitions a measurement")
    parser.add_argument("--timeout", type=float, default=900, help="seconds a measurement")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--list", action="store_true", help="show the tasks and their cases")
    options = parser.parse_args(arguments)
    if options.patience is None:
        options.patience = 1.0 if options.quick else 30.0
    return options


def selected_cases(task: Task, options: argparse.Namespace) -> list[Case]:
    cases = [
        case
        for case in task.cases
        if options.min_rows <= max(case.n_rows, case.n_background) <= options.max_rows
        and (options.models is None or case.model in options.models)
        and (options.columns is None or case.n_columns in options.columns)
    ]
    if options.quick:
        cases = cases[:1] if task.quick else []
    if task.keeps_threads:
        return cases
    return [replace(case, threads=options.threads) for case in cases]


def selected_contenders(task: Task, case: Case, peers: list[str] | None) -> list[str]:
    """Ours first, so that there is something to compare with."""
    return [
        name
        for name in task.contenders
        if name.startswith(OURS)
        or (
            takes_part(name, case)
            and (peers is None or name in peers)
            and (name == "predict" or find_spec(name) is not None)
        )
    ]


def run(task: str, contender: str, case: Case, folder: Path, options) -> Measurement:
    """Measure in a new process."""
    wanted = Measurement(task, contender, case)
    threads = {name: str(case.threads) for name in THREAD_VARIABLES}
    arguments = [wanted.spec, str(folder), str(options.patience)]
    command = [sys.executable, "-m", "benchmarks.measure", *arguments]
    measured = folder / "measured.json"
    measured.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **threads},
            timeout=options.timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return replace(wanted, error=f"stopped after {options.timeout:g} s")
    if done.returncode or not measured.exists():
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return replace(wanted, error=f"failed: {lines[-1][:200]}")
    return Measurement.from_json(measured.read_text())


def plan(options: argparse.Namespace) -> Iterator[tuple[str, str, Case]]:
    for task in TASKS:
        if task.name in options.tasks:
            for case in selected_cases(task, options):
                for contender in selected_contenders(task, case, options.peers):
                    yield task.name, contender, case


def main(arguments=None) -> None:
    options = parse(arguments)
    planned = list(plan(options))
    if options.list:
        print(*(f"{task:22} {contender:22} {case}" for task, contender, case in planned), sep="\n")
        return
    report = Report(options.output)
    with tempfile.TemporaryDirectory() as folder:
        for number, (task, contender, case) in enumerate(planned, 1):
            cached_rows(max(case.n_rows, case.n_background), case.n_columns)
            cached_model(case)
            row = report.add(run(task, contender, case, Path(folder), options))
            shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in row.items()}
            print(f"[{number} of {len(planned)}]", json.dumps(shown), flush=True)
    report.plot()
    print(f"wrote {options.output}/benchmarks.csv, .md and .png")


if __name__ == "__main__":
    main()
