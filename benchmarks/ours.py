"""The tasks by this package, through its public interface."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Inputs
from benchmarks.jobs import Answer, Job, middle_centred
from fastpd_sklearn import ALEExplainer, FastPDExplainer, ICEExplainer, PathDependentExplainer
from fastpd_sklearn.forest import find_reader

KEPT_ROWS = 20
"""Rows whose values are compared where there are many terms, lest they be most of the memory."""


def read_model(inputs: Inputs) -> Job:
    model = inputs.model

    def read(reading):
        return Answer(["trees"], np.array([[len(reading.forest.tree_start) - 1.0]]), True)

    return Job(lambda: find_reader(model).read(model), read)


def fit(inputs: Inputs) -> Job:
    def work():
        return FastPDExplainer(n_jobs=inputs.case.threads).fit(inputs.model, inputs.background)

    return Job(work, lambda fitted: Answer(["mean"], fitted.intercept_[None, :], True))


def _explain(kind, output, max_order="auto"):
    def contender(inputs: Inputs) -> Job:
        def work():
            explainer = kind(output=output, max_order=max_order, n_jobs=inputs.case.threads)
            if kind is PathDependentExplainer:
                explainer.fit(inputs.model)
            else:
                explainer.fit(inputs.model, inputs.background)
            return explainer, explainer.transform(inputs.rows)

        return Job(work, lambda result: _read(*result, inputs.sample))

    return contender


def _read(explainer, values, rows=()) -> Answer:
    values = values[rows].T if len(rows) else values.T
    if explainer.output == "pd":
        values = values - explainer.intercept_[0]
    return Answer([":".join(term) for term in explainer.terms_], values, True, rows)


def shap_fitted(refit: bool):
    """SHAP by an explainer that is fitted already; with ``refit`` anew before each call."""

    def contender(inputs: Inputs) -> Job:
        explainer = FastPDExplainer(output="shap", n_jobs=inputs.case.threads)

        def fit():
            explainer.fit(inputs.model, inputs.background)

        fit()
        return Job(
            lambda: (explainer, explainer.transform(inputs.rows)),
            lambda result: _read(*result, inputs.sample),
            prepare=fit if refit else lambda: None,
        )

    return contender


def shap_read(inputs: Inputs) -> Job:
    """SHAP of a forest that has been read already, with the fit."""
    forest = find_reader(inputs.model).read(inputs.model).forest

    def work():
        explainer = FastPDExplainer(output="shap", n_jobs=inputs.case.threads)
        return explainer, explainer.fit(forest, inputs.background).transform(inputs.rows)

    return Job(work, lambda result: _read(*result, inputs.sample))


pd_values = _explain(FastPDExplainer, "pd")
shap = _explain(FastPDExplainer, "shap")
shap_path = _explain(PathDependentExplainer, "shap")
shap_interaction = _explain(FastPDExplainer, "shap_interaction")
shap_interaction_path = _explain(PathDependentExplainer, "shap_interaction")
components2 = _explain(FastPDExplainer, "component", 2)
components_any = _explain(FastPDExplainer, "component", None)


def pd_curves(inputs: Inputs) -> Job:
    """Exact step functions of all columns."""

    def work():
        explainer = FastPDExplainer(n_jobs=inputs.case.threads)
        explainer.fit(inputs.model, inputs.background)
        names = range(inputs.case.n_columns)
        return explainer.intercept_, [explainer.partial_dependence(j).curve for j in names]

    def read(result):
        mean, curves = result
        levels = [curve.levels[0] for curve in curves]
        terms = [f"x{j}[{i}]" for j, level in enumerate(levels) for i in range(len(level))]
        return Answer(terms, np.concatenate(levels)[:, None] - mean, False)

    return Job(work, read)


def _fit_components(inputs: Inputs, max_order) -> FastPDExplainer:
    explainer = FastPDExplainer(output="component", max_order=max_order, n_jobs=inputs.case.threads)
    return explainer.fit(inputs.model, inputs.background)


def components_blocks(max_order):
    """Components block by block: their running means, and values of a few rows."""

    def contender(inputs: Inputs) -> Job:
        sample = inputs.sample[:KEPT_ROWS]

        def work():
            terms, means, picked = [], [], []
            explainer = _fit_components(inputs, max_order)
            for names, values in explainer.explain_blocks(inputs.rows):
                terms += names
                picked.append(values[sample].T)
                means.append(np.abs(values, out=values).mean(axis=0))
            return terms, np.concatenate(means), np.concatenate(picked)

        def read(result):
            terms, _, values = result
            return Answer([":".join(term) for term in terms], values, True, sample)

        return Job(work, read)

    return contender


def components2_out(inputs: Inputs) -> Job:
    """Into an array that is there already, a column a term."""
    # Their number is known only once the model is read; twice as fast as rows side by side.
    n_terms = len(_fit_components(inputs, 2).terms_)
    room = np.zeros((inputs.case.n_rows, n_terms), order="F")
    room[:] = np.nan  # so that its memory is there, too

    def work():
        explainer = _fit_components(inputs, 2)
        return explainer, explainer.explain(inputs.rows, out=room).values

    return Job(work, lambda result: _read(*result, inputs.sample))


def components2_single(inputs: Inputs) -> Job:
    """Into a new array of half the size."""

    def work():
        explainer = _fit_components(inputs, 2)
        room = np.empty((inputs.case.n_rows, len(explainer.terms_)), np.float32, order="F")
        return explainer, explainer.explain(inputs.rows, out=room).values

    return Job(work, lambda result: _read(*result, inputs.sample))


def pd_grid(n_points: int):
    def contender(inputs: Inputs) -> Job:
        grid = inputs.grid(n_points)

        def work():
            explainer = FastPDExplainer(n_jobs=inputs.case.threads)
            explainer.fit(inputs.model, inputs.background)
            columns = enumerate(grid.T)
            averages = [explainer.partial_dependence(j, points).average[0] for j, points in columns]
            return explainer.intercept_[0], np.array(averages)

        return Job(work, lambda result: Answer(inputs.names, result[1] - result[0], True))

    return contender


def response_curves(with_fit: bool):
    """Exact curves of all columns on the scale of the response, by what ``np.exp`` takes.

    That is over as many numbers as there are rows of the background times pieces of the curves.
    """

    def contender(inputs: Inputs) -> Job:
        columns = range(inputs.case.n_columns)
        pieces = [inputs.pieces(j) for j in columns]
        method = "predict_proba" if hasattr(inputs.model, "predict_proba") else "predict"
        fitted: list[FastPDExplainer] = []

        def fit():
            fitted[:] = [FastPDExplainer(response_method=method, n_jobs=inputs.case.threads)]
            fitted[0].fit(inputs.model, inputs.background)

        def work():
            if with_fit:
                fit()
            return [fitted[0].partial_dependence(j).curve for j in columns]

        def read(curves):
            values = [curve(p) for curve, p in zip(curves, pieces, strict=True)]
            return Answer(
                [f"x{j}[{k}, {i}]" for j in columns for k, i in np.ndindex(values[j].shape)],
                np.concatenate([v.ravel() for v in values])[:, None],
                False,
            )

        fit()
        n_outputs = len(fitted[0].intercept_)
        n_outputs = 1 if n_outputs == 2 else n_outputs
        n_values = [len(inputs.background) * len(p) * n_outputs for p in pieces]
        numbers = np.random.default_rng(0).normal(size=max(n_values))
        room = np.empty_like(numbers)

        def unit():
            for n in n_values:
                np.exp(numbers[:n], out=room[:n])

        prepare = (lambda: None) if with_fit else fit
        return Job(work, read, prepare=prepare, unit=unit)

    return contender


def pd_pairs(n_points: int):
    def contender(inputs: Inputs) -> Job:
        grid = inputs.grid(n_points)

        def work():
            explainer = FastPDExplainer(n_jobs=inputs.case.threads)
            explainer.fit(inputs.model, inputs.background)
            result = explainer.pairwise_partial_dependence(grid=list(grid.T))
            return explainer.intercept_[0], result.pairs, result.average[0]

        def read(result):
            mean, pairs, average = result
            terms = [f"x{i}:x{j}" for i, j in pairs.tolist()]
            return Answer(terms, average.reshape(len(terms), -1) - mean, True)

        return Job(work, read)

    return contender


def ale(n_bins: int):
    """Accumulated local effects of all columns, bin edges included."""

    def contender(inputs: Inputs) -> Job:
        def work():
            explainer = ALEExplainer(n_bins=n_bins, confidence=None, n_jobs=inputs.case.threads)
            return explainer.fit(inputs.model, inputs.background).effects_

        def read(effects):
            parts = [
                middle_centred(f"x{j}", curve.grid_values[0], curve.effect[0], curve.bin_counts)
                for j, curve in enumerate(effects)
            ]
            terms = [term for names, _ in parts for term in names]
            return Answer(terms, np.concatenate([values for _, values in parts])[:, None], False)

        return Job(work, read)

    return contender


def ice(n_points: int):
    """The curves of all rows along all columns."""

    def contender(inputs: Inputs) -> Job:
        grid = inputs.grid(n_points).astype(np.float64)

        def work():
            explainer = ICEExplainer(
                custom_values=dict(enumerate(grid.T)), n_jobs=inputs.case.threads
            )
            return explainer.fit(inputs.model, inputs.background).transform(inputs.rows)

        def read(values):
            terms = [f"{name}[{k}]" for name in inputs.names for k in range(n_points)]
            return Answer(terms, values[inputs.sample].T, True, inputs.sample)

        return Job(work, read)

    return contender


def ice_one(n_points: int):
    """The curves of all rows along one column, and what they may take as the unit."""

    def contender(inputs: Inputs) -> Job:
        points = inputs.grid(n_points)[:, 0].astype(np.float64)
        explainer = ICEExplainer(
            features=[0], custom_values={0: points}, n_jobs=inputs.case.threads
        ).fit(inputs.model, inputs.background)
        result = np.zeros((len(inputs.rows), n_points))

        def unit():
            for _ in range(4):
                inputs.model.predict(inputs.rows)
            np.copyto(np.empty_like(result), result)

        def read(values):
            terms = [f"x0[{k}]" for k in range(n_points)]
            return Answer(terms, values[inputs.sample].T, True, inputs.sample)

        return Job(lambda: explainer.transform(inputs.rows), read, unit=unit)

    return contender
