"""One table of all measurements, what it says of the budgets, and a plot."""

from __future__ import annotations

import csv
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.budgets import BUDGETS
from benchmarks.check import compare
from benchmarks.measure import Measurement
from benchmarks.tasks import OURS

COLUMNS = (
    *("task", "model", "trees", "columns", "background", "rows", "threads", "contender"),
    *(
        "seconds",
        "runs",
        "x predict",
        "x unit",
        "x peer",
        "peak MiB",
        "output MiB",
        "values",
        "note",
    ),
)
PACKAGES = ("fastpd-sklearn", "numpy", "scikit-learn", "xgboost", "lightgbm", "shap")
SLOPES = ("task", "contender", "model", "by", "slope")
THREADS = ("contender", "model", "threads", "x one thread")
STEEP_FROM = 10_000
"""Fewest rows from which a slope is fitted."""


class Report:
    """Keeps its files up to date after each measurement."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: list[dict] = []
        self.measured: list[Measurement] = []
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, found: Measurement) -> dict:
        """Add a measurement; others come after that of ours in the same case."""
        row = _row(found)
        if not found.error and found.contender != OURS:
            self._put_beside(found, row)
        self.measured.append(found)
        self.rows.append(row)
        self._write_csv()
        (self.folder / "benchmarks.md").write_text(self.markdown())
        return row

    def _put_beside(self, found: Measurement, row: dict) -> None:
        ours = self._find(found)
        if ours is None:
            return
        verdict = compare(ours, found)
        if found.contender.startswith(OURS):  # another way to the same, or to something else
            row["values"] = verdict.text if verdict.comparable else ""
            return
        row["values"] = verdict.text
        if verdict.comparable and found.contender != "predict":
            row["x peer"] = found.seconds / ours.seconds

    def _find(self, found: Measurement) -> Measurement | None:
        same = (m for m in self.measured if (m.task, m.case) == (found.task, found.case))
        return next((m for m in same if m.contender == OURS), None)

    def _write_csv(self) -> None:
        with (self.folder / "benchmarks.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)

    def markdown(self) -> str:
        parts = [
            _machine(),
            "`seconds`: the best of so many `runs`; where that is 1, a first run. "
            "`x predict`: time over that of the model's `predict` on the same rows, `x unit`: over "
            "that of a unit that the task names. `x peer`: time "
            f"of that peer over that of {OURS}; only where both gave the same values from the same "
            "model, background and rows.",
            _table(COLUMNS, [[_text(row[name]) for name in COLUMNS] for row in self.rows]),
        ]
        if budgets := self._budgets():
            parts += ["## Budgets", _table(("task", "case", "limit", "found", "holds"), budgets)]
        if slopes := self._slopes():
            parts += ["## Log-log slopes", _table(SLOPES, slopes)]
        if threads := self._threads():
            parts += ["## Threads", _table(THREADS, threads)]
        if bits := self._bits():
            parts += ["## Same bits for any number of threads", bits]
        return "\n\n".join(parts) + "\n"

    def _budgets(self) -> list[list[str]]:
        out = []
        for budget in BUDGETS:
            for found, row in zip(self.measured, self.rows, strict=True):
                if not found.error and budget.applies(found.task, found.contender, found.case):
                    where = f"{found.case.model}, {row['rows']} x {row['columns']}"
                    out += [
                        [row["task"], f"{found.contender}, {where}", *line]
                        for line in self._limits(budget, found, row)
                    ]
        return out

    def _limits(self, budget, found: Measurement, row: dict):
        limits = [
            ("x predict", budget.x_predict, row["x predict"]),
            ("x unit", budget.x_unit, row["x unit"]),
            ("MiB", budget.mib, found.peak_mib),
            ("ms", budget.milliseconds, 1000 * found.seconds),
        ]
        for name, limit, value in limits:
            if np.isfinite(limit):
                yield f"<= {limit:g} {name}", f"{value:.3g}", "yes" if value <= limit else "no"
        for peer, limit in budget.x_peer.items():
            value = self._ratio_to(peer, found)
            if value is not None:
                yield f">= {limit:g} x {peer}", f"{value:.3g}", "yes" if value >= limit else "no"

    def _ratio_to(self, peer: str, found: Measurement) -> float | None:
        for other, row in zip(self.measured, self.rows, strict=True):
            if (other.task, other.case, other.contender) == (found.task, found.case, peer):
                return other.seconds / found.seconds if row["x peer"] else None
        return None

    def _slopes(self) -> list[list[str]]:
        """Of ours, by each number that differs between cases that are otherwise the same."""
        out = []
        for (task, contender, model, by), points in series(self.measured).items():
            points = [p for p in points if p[0] >= STEEP_FROM or by == "trees"]
            if len({size for size, _ in points}) > 1:
                size, seconds = np.log(np.array(points)).T
                slope = f"{np.polyfit(size, seconds, 1)[0]:.2f}"
                out.append([task, contender, model, by, slope])
        return out

    def _threads(self) -> list[list[str]]:
        """How many times as fast ours is with more threads than one."""
        seconds = {
            (m.contender, f"{m.case.model}, {m.case.n_columns} columns", m.case.threads): m.seconds
            for m in self.measured
            if m.task == "scaling_threads" and not m.error
        }
        return [
            [contender, model, str(threads), f"{seconds[contender, model, 1] / taken:.2f}"]
            for (contender, model, threads), taken in seconds.items()
            if threads > 1 and (contender, model, 1) in seconds
        ]

    def _bits(self) -> str:
        """Whether values are the same to the last bit."""
        digests = [m.digest for m in self.measured if m.task == "scaling_threads" and not m.error]
        if len(digests) < 2:
            return ""
        return "yes" if len(set(digests)) == 1 else "NO"

    def plot(self) -> None:
        """Draw cost against rows, a panel a task; nothing without matplotlib."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return
        lines = plot_lines(self.measured)
        if not lines:
            return
        tasks = list(dict.fromkeys(task for task, _ in lines))
        n_wide = min(3, len(tasks))
        n_high = -(-len(tasks) // n_wide)
        figure = Figure(figsize=(5 * n_wide, 4 * n_high), layout="constrained")
        axes = figure.subplots(n_high, n_wide, squeeze=False).ravel()
        for (task, label), points in lines.items():
            axis = axes[tasks.index(task)]
            axis.loglog(*zip(*sorted(points), strict=True), marker="o", label=label)
            axis.set(title=task, xlabel="rows", ylabel="seconds")
        for axis in axes:
            axis.set_visible(axis.has_data())
            if axis.has_data():
                axis.legend(fontsize=6)
        figure.savefig(self.folder / "benchmarks.png", dpi=120)


def series(measured: list[Measurement]) -> dict[tuple, list[tuple[float, float]]]:
    """Points (size, seconds) of ours by task, contender, model and what the size is."""
    out: dict[tuple, list] = {}
    for found in measured:
        if found.error or not found.contender.startswith(OURS):
            continue
        case, by = found.case, {"scaling_background": "background", "scaling_trees": "trees"}
        what = by.get(found.task, "rows")
        size = {"background": case.n_background, "trees": case.n_trees, "rows": case.n_rows}[what]
        model = f"{case.model}, {case.n_columns} columns"
        if found.task != "scaling_threads":
            key = found.task, found.contender, model, what
            out.setdefault(key, []).append((size, found.seconds))
    return out


def plot_lines(measured: list[Measurement]) -> dict[tuple, list[tuple[float, float]]]:
    """Points (rows, seconds) by task and label, where there are at least two."""
    out: dict[tuple, list] = {}
    for found in measured:
        if found.error or found.task in ("scaling_trees", "scaling_threads"):
            continue
        case = found.case
        size = max(case.n_background, case.n_rows)
        where = f"{case.model}, {case.n_columns} columns"
        for name, seconds in ((found.contender, found.seconds), ("predict", found.predict_seconds)):
            if name != "predict" or found.contender.startswith(OURS):
                out.setdefault((found.task, f"{name}, {where}"), []).append((size, seconds))
    return {key: points for key, points in out.items() if len({p[0] for p in points}) > 1}


def _row(found: Measurement) -> dict:
    case, note = found.case, found.note
    if found.share < 1:
        note = "; ".join(filter(None, [note, f"{found.share:.2g} of it measured, scaled up"]))
    failed = bool(found.error)
    return {
        "task": found.task,
        "model": case.model,
        "trees": case.n_trees,
        "columns": case.n_columns,
        "background": case.n_background,
        "rows": case.n_rows,
        "threads": case.threads,
        "contender": found.contender,
        "seconds": "" if failed else found.seconds,
        "runs": "" if failed else found.repetitions,
        "x predict": "" if failed else found.seconds / found.predict_seconds,
        "x unit": found.seconds / found.unit_seconds if found.unit_seconds > 0 else "",
        "x peer": "",
        "peak MiB": "" if failed else found.peak_mib,
        "output MiB": "" if failed else found.output_mib,
        "values": "",
        "note": found.error or note,
    }


def _text(value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "/")


def _table(header, rows) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _machine() -> str:
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    versions = ", ".join(f"{name} {_version(name)}" for name in (*PACKAGES, "woodelf-explainer"))
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, load {load}; "
        f"Python {platform.python_version()}, {versions}."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
