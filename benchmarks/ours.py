"""The tasks by this package, through its public interface."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from benchmarks.cases import Inputs
from benchmarks.jobs import Answer, Job, joint_points, pair_block
from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from fastpd_sklearn.forest import find_reader


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


def pd_grid(n_points: int):
    def contender(inputs: Inputs) -> Job:
        grid = inputs.grid(n_points)

        def work():
            explainer = FastPDExplainer(n_jobs=inputs.case.threads)
            explainer.fit(inputs.model, inputs.background)
            return explainer, explainer.transform(grid)

        return Job(work, lambda result: _read(*result))

    return contender


def pd_pairs(n_points: int):
    """The joint partial dependence of all pairs, on rows that hold all their grids."""

    def contender(inputs: Inputs) -> Job:
        rows = joint_points(inputs.grid(n_points))
        pairs = list(combinations(range(inputs.case.n_columns), 2))

        def work():
            explainer = FastPDExplainer(features=pairs, max_order=2, n_jobs=inputs.case.threads)
            explainer.fit(inputs.model, inputs.background)
            return explainer.intercept_[0], explainer.transform(rows)

        def read(result):
            mean, values = result
            picked = [values[pair_block(*p, n_points), t] - mean for t, p in enumerate(pairs)]
            return Answer([f"x{i}:x{j}" for i, j in pairs], np.array(picked), True)

        return Job(work, read)

    return contender
