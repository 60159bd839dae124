"""``python -m benchmarks.distributed``: workers, sizes of states and what merging costs."""

from __future__ import annotations

import argparse
import copy
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
N_COLUMNS = 50


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the background")
    parser.add_argument("--chunk-rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 6, 8, 10])
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--repeats", type=int, default=3, help="the best one counts")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args(arguments)


def model_of(depth: int, n_trees: int):
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = np.random.default_rng(0).standard_normal((20_000, N_COLUMNS))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:10] @ np.ones(7) + (X[:, 10] > X[:, 11])
    return HistGradientBoostingRegressor(
        max_iter=n_trees, max_depth=depth, max_leaf_nodes=None, min_samples_leaf=5
    ).fit(X, y)


def seconds(work: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best


def speeds(options) -> Iterator[dict]:
    """Rows per second of a fit and of explanations, which stay on the workers."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from fastpd_sklearn import FastPDExplainer

    model = model_of(6, 100)
    for n_workers in options.workers:
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, scheduler_port=0, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(n_workers)
            shape = (options.rows, N_COLUMNS)
            rows = da.random.default_rng(0).standard_normal(
                shape, dtype=np.float32, chunks=(options.chunk_rows, N_COLUMNS)
            )
            rows = rows.persist()
            explainer = FastPDExplainer(output="shap").fit(model, rows)
            works = {
                "fit": lambda rows=rows: FastPDExplainer(output="shap").fit(model, rows),
                "transform": lambda e=explainer, rows=rows: e.transform(rows).sum().compute(),
            }
            for name, work in works.items():
                taken = seconds(work, options.repeats)
                yield {"what": name, "workers": n_workers, "rows_per_second": options.rows / taken}


def states(options) -> Iterator[dict]:
    """Bytes of an explainer without its model, and seconds to merge two."""
    from fastpd_sklearn import FastPDExplainer

    X = np.random.default_rng(1).standard_normal((options.chunk_rows, N_COLUMNS))
    for n_trees in options.trees:
        for depth in options.depths:
            explainer = FastPDExplainer(output="shap").fit(model_of(depth, n_trees), X).detach()
            other = copy.copy(explainer)
            sent = pickle.dumps(explainer)
            yield {
                "trees": n_trees,
                "depth": depth,
                "leaves": int(np.count_nonzero(explainer._fitted.engine.forest.left < 0)),
                "megabytes": len(sent) / 1e6,
                "merge_seconds": seconds(
                    lambda e=explainer, o=other: copy.copy(e).merge(o), options.repeats
                ),
                "unpickle_seconds": seconds(lambda s=sent: pickle.loads(s), options.repeats),
            }


def table(rows: list[dict]) -> str:
    names = list(rows[0])
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(shown(row[name]) for name in names) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def shown(value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) or value >= 1e4 else f"{value:.3g}"


def billion(speed: list[dict], state: list[dict]) -> str:
    """What a billion rows on a hundred workers take by these figures."""
    least = min(row["workers"] for row in speed)
    lines = []
    for name in ("fit", "transform"):
        one = next(r for r in speed if r["what"] == name and r["workers"] == least)
        rate = one["rows_per_second"] / least
        lines.append(f"{name}: 1e9 rows / (100 workers x {rate:,.0f} rows/s) = {1e7 / rate:,.0f} s")
    largest = max(state, key=lambda row: row["megabytes"])
    lines.append(
        f"states: the largest has {largest['megabytes']:,.0f} MB (depth {largest['depth']}, "
        f"{largest['trees']} trees); 10,000 chunks are 10,000 merges of "
        f"{largest['merge_seconds']:.2g} s, on 100 workers "
        f"{100 * largest['merge_seconds']:,.1f} s"
    )
    return "\n".join(f"* {line}" for line in lines)


def plot(speed: list[dict], state: list[dict], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for name in ("fit", "transform"):
        rows = [row for row in speed if row["what"] == name]
        workers = [row["workers"] for row in rows]
        axes[0].plot(workers, [row["rows_per_second"] / 1e6 for row in rows], "o-", label=name)
    axes[0].set(xlabel="workers of one thread", ylabel="million rows per second", ylim=(0, None))
    axes[0].set_xticks(sorted({row["workers"] for row in speed}))
    for n_trees in sorted({row["trees"] for row in state}):
        rows = [row for row in state if row["trees"] == n_trees]
        depths = [row["depth"] for row in rows]
        for axis, name in zip(axes[1:], ("megabytes", "merge_seconds"), strict=True):
            axis.plot(depths, [row[name] for row in rows], "o-", label=f"{n_trees} trees")
    axes[1].set(xlabel="depth", ylabel="megabytes of a state", yscale="log")
    axes[2].set(xlabel="depth", ylabel="seconds to merge two states", yscale="log")
    for axis in axes:
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments=None) -> None:
    options = parse(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options.output.mkdir(parents=True, exist_ok=True)
    speed, state = list(speeds(options)), list(states(options))
    text = f"{table(speed)}\n\n{table(state)}\n\n{billion(speed, state)}\n"
    (options.output / "distributed.md").write_text(text)
    plot(speed, state, options.output / "distributed.png")
    print(text)


if __name__ == "__main__":
    main()
