"""The tasks by other packages, each used in the way that is best for it."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Inputs
from benchmarks.jobs import Answer, Job, middle_centred


def predict_mean(inputs: Inputs) -> Job:
    return Job(inputs.mean, lambda mean: Answer(["mean"], np.array([[mean]]), True))


# ------------------------------------------------------------------ woodelf


def _woodelf_depth(inputs: Inputs) -> tuple[object, int]:
    from woodelf.core.trees.parse_models import load_decision_tree_ensemble_model

    forest = load_decision_tree_ensemble_model(inputs.model, inputs.names)
    return forest, forest.max_depth


def _woodelf_values(values: dict, rows, mean: float = 0.0) -> Answer:
    """Of a dictionary from names, or tuples of them, to columns."""
    terms, columns = [], []
    for key, column in values.items():
        names = (key,) if isinstance(key, str) else key
        numbers = sorted({int(name[1:]) for name in names})
        terms.append(":".join(f"x{j}" for j in numbers))
        columns.append(np.asarray(column)[rows] - mean)
    return Answer(terms, np.array(columns), True)


def woodelf_pd_values(inputs: Inputs) -> Job:
    return _woodelf_pd(inputs, inputs.frames[0], inputs.sample)


def woodelf_pd_grid(n_points: int):
    def contender(inputs: Inputs) -> Job:
        import pandas as pd

        points = pd.DataFrame(np.asfortranarray(inputs.grid(n_points)), columns=inputs.names)
        return _woodelf_pd(inputs, points, slice(None))

    return contender


def _woodelf_pd(inputs: Inputs, points, rows) -> Job:
    from woodelf.pdp import woodelf_fast_pdp

    background = inputs.frames[1]

    def work():
        forest, depth = _woodelf_depth(inputs)
        return woodelf_fast_pdp(
            forest,
            points,
            background,
            model_was_loaded=True,
            use_woodelfhd=depth <= 6,  # as its own woodelf_pdp chooses
            verbose=False,
        )

    return Job(work, lambda values: _woodelf_values(values, rows))


def woodelf_pd_curves(inputs: Inputs) -> Job:
    from woodelf.pdp import build_points_for_full_pdp, woodelf_pdp

    background = inputs.frames[1]
    # It names a point of XGBoost's one float32 step too low, and gives the piece above it.
    first = 1 if inputs.case.model.startswith("xgb") else 0
    note = "its points are one float32 step low (known fault); compared a step up" * first

    def read(result):
        points = build_points_for_full_pdp(background, inputs.model, as_df=False)
        terms, levels = [], []
        for name, values in result[0].items():
            terms += [f"{name}[{i + first}]" for i in range(len(points[name]))]
            levels.append(np.asarray(values)[: len(points[name])])
        return Answer(terms, np.concatenate(levels)[:, None], False)

    return Job(
        lambda: woodelf_pdp(inputs.model, background, full_pdp=True, verbose=False),
        read,
        note=note,
    )


def woodelf_pd_pairs(n_points: int):
    def contender(inputs: Inputs) -> Job:
        import pandas as pd
        from woodelf import pdp

        points = pd.DataFrame(inputs.grid(n_points), columns=inputs.names)
        pdp.build_points_for_pdp = lambda *args, **kwargs: points  # the grid of this case
        background = inputs.frames[1]

        def read(result):
            pairs = {p: v for p, v in result[0].items() if int(p[0][1:]) < int(p[1][1:])}
            fast_first = np.arange(n_points**2).reshape(n_points, n_points).T.ravel()
            return _woodelf_values(pairs, fast_first, inputs.mean())

        return Job(
            lambda: pdp.woodelf_pdp_joint(inputs.model, background, k=n_points, verbose=False),
            read,
        )

    return contender


def woodelf_shap(inputs: Inputs) -> Job:
    return _woodelf_shap(inputs, inputs.frames[1])


def woodelf_shap_path(inputs: Inputs) -> Job:
    return _woodelf_shap(inputs, None)


def _woodelf_shap(inputs: Inputs, background) -> Job:
    from woodelf import WoodelfExplainer

    rows = inputs.frames[0]
    return Job(
        lambda: WoodelfExplainer(inputs.model, background).shap_values(rows, verbose=False),
        lambda values: Answer(inputs.names, values[inputs.sample].T, True),
    )


def woodelf_shap_interaction(inputs: Inputs) -> Job:
    return _woodelf_interaction(inputs, inputs.frames[1])


def woodelf_shap_interaction_path(inputs: Inputs) -> Job:
    return _woodelf_interaction(inputs, None)


def _woodelf_interaction(inputs: Inputs, background) -> Job:
    from woodelf import WoodelfExplainer

    rows = inputs.frames[0]

    def work():
        return WoodelfExplainer(inputs.model, background).shap_interaction_values(
            rows, as_df=True, exclude_zero_contribution_features=True, verbose=False
        )

    def read(frame):
        once = {(i, j): frame[i, j] for i, j in frame.columns if int(i[1:]) <= int(j[1:])}
        return _woodelf_values(once, inputs.sample)

    return Job(work, read)


def woodelf_components2(inputs: Inputs) -> Job:
    from woodelf.core.cube_metric import PDIVOrder1Or2

    return _woodelf_components(inputs, PDIVOrder1Or2())


def woodelf_components_any(inputs: Inputs) -> Job:
    from woodelf.core.cube_metric import ArbitraryOrderPDIV

    return _woodelf_components(inputs, ArbitraryOrderPDIV())


def _woodelf_components(inputs: Inputs, metric) -> Job:
    from woodelf.high_depth_woodelf import woodelf_for_high_depth

    rows, background = inputs.frames

    def read(values):
        once = {tuple(sorted(k)): v for k, v in values.items() if k}
        return _woodelf_values(once, inputs.sample)

    return Job(
        lambda: woodelf_for_high_depth(inputs.model, rows, background, metric, verbose=False), read
    )


# -------------------------------------------------- shap, XGBoost, LightGBM


def _rows_job(inputs: Inputs, limit: int, explain, read) -> Job:
    """A cost that is linear in the explained rows is measured on some of them."""
    picked = inputs.some(max(1, limit))
    rows = np.ascontiguousarray(inputs.rows[picked])
    n_read = min(len(picked), len(inputs.sample))
    return Job(lambda: explain(rows), lambda v: read(v[:n_read]), len(picked) / len(inputs.rows))


def _shap_answer(inputs: Inputs):
    """Of SHAP values, with or without the base value in the last column."""
    return lambda v: Answer(inputs.names, v[:, : inputs.case.n_columns].T, True)


def _interaction_answer(inputs: Inputs):
    """Of matrices of SHAP interaction values, with or without the base value at the end."""

    def read(values):
        i, j = np.triu_indices(inputs.case.n_columns)
        terms = [f"x{a}" if a == b else f"x{a}:x{b}" for a, b in zip(i, j, strict=True)]
        return Answer(terms, values[:, i, j].T, True)

    return read


def shap_shap(inputs: Inputs) -> Job:
    import shap

    background = shap.maskers.Independent(inputs.background, max_samples=len(inputs.background))

    def explain(rows):
        explainer = shap.TreeExplainer(
            inputs.model, background, feature_perturbation="interventional"
        )
        return explainer.shap_values(rows, check_additivity=False)

    limit = 400_000 // len(inputs.background)
    return _rows_job(inputs, limit, explain, _shap_answer(inputs))


def shap_shap_path(inputs: Inputs) -> Job:
    from shap import TreeExplainer

    def explain(rows):
        explainer = TreeExplainer(inputs.model, feature_perturbation="tree_path_dependent")
        # Otherwise it hands the models of XGBoost and LightGBM to their own libraries.
        explainer.model.model_type = "internal"
        return explainer.shap_values(rows, check_additivity=False)

    return _rows_job(inputs, 2000, explain, _shap_answer(inputs))


def xgboost_shap_path(inputs: Inputs) -> Job:
    return _xgboost(inputs, 4000, _shap_answer(inputs), pred_contribs=True)


def xgboost_shap_interaction_path(inputs: Inputs) -> Job:
    limit = 6000 // inputs.case.n_columns
    return _xgboost(inputs, limit, _interaction_answer(inputs), pred_interactions=True)


def _xgboost(inputs: Inputs, limit: int, read, **what) -> Job:
    from xgboost import DMatrix

    booster, threads = inputs.model.get_booster(), inputs.case.threads
    return _rows_job(
        inputs, limit, lambda rows: booster.predict(DMatrix(rows, nthread=threads), **what), read
    )


def lightgbm_shap_path(inputs: Inputs) -> Job:
    def explain(rows):
        return inputs.model.predict(rows, pred_contrib=True)

    return _rows_job(inputs, 4000, explain, _shap_answer(inputs))


# ------------------------------------------------------------------- PyALE


def pyale_ale(n_bins: int):
    """Some of the columns, one at a time, as its interface has it."""

    def contender(inputs: Inputs) -> Job:
        import logging

        from PyALE import ale

        background = inputs.frames[1]
        # Of columns with ties it makes other bins.
        columns = [j for j in (0, 3, 4, 7) if j < inputs.case.n_columns]

        def work():
            logging.disable(logging.INFO)
            return [
                ale(
                    X=background,
                    model=inputs.model,
                    feature=[f"x{j}"],
                    grid_size=n_bins,
                    include_CI=False,
                    plot=False,
                )
                for j in columns
            ]

        def read(results):
            parts = [
                middle_centred(
                    f"x{j}", frame.index.to_numpy(), frame["eff"].to_numpy(), frame["size"][1:]
                )
                for j, frame in zip(columns, results, strict=True)
            ]
            terms = [term for names, _ in parts for term in names]
            return Answer(terms, np.concatenate([values for _, values in parts])[:, None], False)

        return Job(work, read, len(columns) / inputs.case.n_columns)

    return contender


# ------------------------------------------------------------- scikit-learn


def sklearn_ice(n_points: int):
    """Individual curves along one column."""

    def contender(inputs: Inputs) -> Job:
        from sklearn.inspection import partial_dependence

        grid = inputs.grid(n_points)

        def work():
            return partial_dependence(
                inputs.model,
                inputs.rows,
                [0],
                custom_values={0: grid[:, 0]},
                method="brute",
                kind="individual",
            ).individual[0]

        def read(curves):
            terms = [f"x0[{k}]" for k in range(n_points)]
            return Answer(terms, curves[inputs.sample].T, False, inputs.sample)

        return Job(work, read, 1 / inputs.case.n_columns)

    return contender


def sklearn_pd_grid(n_points: int):
    """Brute force on some of the columns, about 200 000 predictions."""

    def contender(inputs: Inputs) -> Job:
        grid, n_columns = inputs.grid(n_points), inputs.case.n_columns
        per_column = n_points * inputs.case.n_background
        columns = range(min(n_columns, max(1, 200_000 // per_column)))

        def read(averages):
            return Answer(inputs.names[: len(columns)], np.array(averages) - inputs.mean(), False)

        def work():
            return [_brute_force(inputs, (j,), grid)[0] for j in columns]

        return Job(work, read, len(columns) / n_columns)

    return contender


def sklearn_response_curves(inputs: Inputs) -> Job:
    """Brute force at every piece of one column's curve."""
    from sklearn.inspection import partial_dependence

    points = inputs.pieces(0)

    def work():
        return partial_dependence(
            inputs.model,
            inputs.background,
            [0],
            custom_values={0: points},
            method="brute",
            kind="average",
        ).average

    def read(average):
        terms = [f"x0[{k}, {i}]" for k, i in np.ndindex(average.shape)]
        return Answer(terms, average.reshape(-1, 1), False)

    return Job(work, read, 1 / inputs.case.n_columns)


def sklearn_pd_pairs(n_points: int):
    """Brute force on one pair."""

    def contender(inputs: Inputs) -> Job:
        grid, n_columns = inputs.grid(n_points), inputs.case.n_columns

        def read(average):
            return Answer(["x0:x1"], average.reshape(1, -1) - inputs.mean(), False)

        share = 2 / (n_columns * (n_columns - 1))
        return Job(lambda: _brute_force(inputs, (0, 1), grid), read, share)

    return contender


def _brute_force(inputs: Inputs, features: tuple[int, ...], grid: np.ndarray) -> np.ndarray:
    from sklearn.inspection import partial_dependence

    return partial_dependence(
        inputs.model,
        inputs.background,
        list(features),
        custom_values={j: grid[:, j] for j in features},
        method="brute",
        kind="average",
    ).average
