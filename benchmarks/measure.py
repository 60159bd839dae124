"""One measurement, in a process of its own: ``... benchmarks.measure SPEC FOLDER PATIENCE``."""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.cases import Case, Inputs, digest
from benchmarks.jobs import Job
from benchmarks.memory import peak_mib
from benchmarks.tasks import TASKS

REPETITIONS = 5


@dataclass
class Measurement:
    """What is known of a contender in a case; ``error`` instead of numbers if it has failed."""

    task: str
    contender: str
    case: Case
    seconds: float = float("nan")
    predict_seconds: float = float("nan")
    unit_seconds: float = float("nan")
    peak_mib: float = float("nan")
    output_mib: float = float("nan")
    share: float = 1.0
    repetitions: int = 0
    note: str = ""
    fingerprint: dict | None = None
    digest: str = ""
    answer: str = ""
    error: str = ""

    @classmethod
    def from_json(cls, text: str) -> Measurement:
        fields = json.loads(text)
        return cls(**{**fields, "case": Case(**fields["case"])})

    @property
    def spec(self) -> str:
        return json.dumps([self.task, self.contender, asdict(self.case)])


def keep_freed_memory() -> None:
    """Let memory stay with the process, so that repetitions find it touched already."""
    trim_threshold, mmap_max = -1, -4  # as malloc.h numbers them
    try:
        allocator = ctypes.CDLL(None)
        allocator.mallopt(trim_threshold, -1)  # never, however large
        allocator.mallopt(mmap_max, 0)
    except (AttributeError, OSError):
        pass  # not glibc


def timed(work) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def best_times(
    inputs: Inputs, job: Job, first: float, patience: float
) -> tuple[float, float, float, int]:
    """Best times of the work, of ``predict`` and of the unit, which take turns, and how many.

    The first run, that of which the memory was measured, counts too: it may be too slow to be
    repeated within ``patience`` seconds.
    """

    def predict():
        inputs.model.predict(inputs.predicted)

    predict()
    times, predict_times, unit_times, started = [first], [], [], perf_counter()
    for _ in range(REPETITIONS):
        predict_times.append(timed(predict))
        unit_times.append(timed(job.unit) if job.unit else float("nan"))
        if perf_counter() - started + first < patience:
            job.prepare()
            times.append(timed(job.work))
    return min(times), min(predict_times), min(unit_times), len(times)


def measure(
    task_name: str, contender: str, case: Case, folder: Path, patience: float
) -> Measurement:
    """Measure memory in a first run, time in more, and keep the values in ``folder``."""
    task = next(task for task in TASKS if task.name == task_name)
    inputs = Inputs(case)
    job = task.contenders[contender](inputs)
    job.prepare()
    result, first, peak = peak_mib(job.work)
    answer = job.read(result)
    values = np.ascontiguousarray(answer.values, dtype=np.float64)
    found = Measurement(task_name, contender, case, peak_mib=peak, share=job.share, note=job.note)
    found.output_mib = size_mib(result)
    del result
    keep_freed_memory()
    seconds, found.predict_seconds, found.unit_seconds, found.repetitions = best_times(
        inputs, job, first, patience
    )
    found.seconds = seconds / job.share
    found.fingerprint = inputs.fingerprint()
    found.digest = digest(values)
    path = folder / f"{digest(np.frombuffer(found.spec.encode(), np.uint8))}.npz"
    arrays = {**answer._asdict(), "values": values, "rows": np.array(answer.rows, dtype=np.int64)}
    np.savez(path, **arrays)
    found.answer = str(path)
    return found


def size_mib(result) -> float:
    """Size of the arrays in a result."""
    if isinstance(result, tuple | list):
        return sum(map(size_mib, result))
    if isinstance(result, dict):
        return size_mib(list(result.values()))
    return getattr(result, "nbytes", 0) / 2**20 if isinstance(result, np.ndarray) else 0.0


def main() -> None:
    task, contender, case = json.loads(sys.argv[1])
    folder = Path(sys.argv[2])
    found = measure(task, contender, Case(**case), folder, float(sys.argv[3]))
    (folder / "measured.json").write_text(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
