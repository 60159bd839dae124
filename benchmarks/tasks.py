"""The tasks: who takes part in each, and on which cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import ours, peers
from benchmarks.cases import Case

OURS = "fastpd"


@dataclass(frozen=True)
class Task:
    """One thing to compute, with all who can.

    A contender makes a :class:`~benchmarks.jobs.Job` of a case's inputs. Those whose names begin
    with ``OURS`` are this package, others are named after the package that they need. Cases are
    run with the number of threads that is asked for, unless the task ``keeps_threads``.
    """

    name: str
    about: str
    cases: tuple[Case, ...]
    contenders: dict[str, Callable]
    quick: bool = False
    keeps_threads: bool = False


LIBRARY_OF = {
    "xgb": "xgboost",
    "xgbsteep": "xgboost",
    "xgbpoisson": "xgboost",
    "xgblogit": "xgboost",
    "xgbsoftmax": "xgboost",
    "lgb": "lightgbm",
    "hgb": "sklearn",
    "rf": "sklearn",
}
OWN_MODELS_ONLY = ("xgboost", "lightgbm")


def takes_part(contender: str, case: Case) -> bool:
    """XGBoost and LightGBM explain their own models only."""
    if contender not in OWN_MODELS_ONLY:
        return True
    return LIBRARY_OF[case.model.partition("_")[0]] == contender


def square(model: str, sizes, columns, **more) -> tuple[Case, ...]:
    """As many rows to explain as in the background."""
    return tuple(Case(model, n, n, d, **more) for d in columns for n in sizes)


SIZES = (1_000, 10_000, 40_000, 400_000)
MANY_SIZES = (1_000, 10_000, 40_000, 100_000, 400_000)
COLUMNS = (20, 50, 397)
MODELS = ("xgb_3", "xgb_8", "xgb_10", "lgb_31", "lgb_255", "hgb_6", "rf_10")

ALL_SIZES = square("xgb_6", SIZES, COLUMNS)
ALL_MODELS = tuple(case for model in MODELS for case in square(model, (400_000,), (50,)))

TASKS = (
    Task(
        "read",
        "Read the model",
        square("xgb_6", (1_000,), COLUMNS),
        {OURS: ours.read_model},
    ),
    Task(
        "fit",
        "Coverage of the background",
        ALL_SIZES + ALL_MODELS,
        {OURS: ours.fit, "predict": peers.predict_mean},
        quick=True,
    ),
    Task(
        "pd_curves",
        "Fit, and the exact curve of every column",
        ALL_SIZES + ALL_MODELS,
        {OURS: ours.pd_curves, "woodelf": peers.woodelf_pd_curves},
        quick=True,
    ),
    Task(
        "pd_values",
        "Fit, and the main effect of every column in every row",
        ALL_SIZES + ALL_MODELS,
        {OURS: ours.pd_values, "woodelf": peers.woodelf_pd_values},
    ),
    Task(
        "pd_grid",
        "Fit, and every column on a grid of 5 points",
        ALL_SIZES,
        {
            OURS: ours.pd_grid(5),
            "woodelf": peers.woodelf_pd_grid(5),
            "sklearn": peers.sklearn_pd_grid(5),
        },
        quick=True,
    ),
    Task(
        "pd_grid100",
        "Fit, and every column on a grid of 100 points",
        square("xgb_6", (40_000, 400_000), COLUMNS),
        {
            OURS: ours.pd_grid(100),
            "woodelf": peers.woodelf_pd_grid(100),
            "sklearn": peers.sklearn_pd_grid(100),
        },
    ),
    Task(
        "pd_pairs",
        "Fit, and every pair of columns on a grid of 5 x 5 points",
        square("xgb_6", (1_000, 40_000, 400_000), COLUMNS),
        {
            OURS: ours.pd_pairs(5),
            "woodelf": peers.woodelf_pd_pairs(5),
            "sklearn": peers.sklearn_pd_pairs(5),
        },
        quick=True,
    ),
    Task(
        "pd_pairs100",
        "Fit, and every pair of columns on a grid of 100 x 100 points",
        square("xgb_6", (40_000, 400_000), (50,)),
        {OURS: ours.pd_pairs(100), "woodelf": peers.woodelf_pd_pairs(100)},
    ),
    Task(
        "ale",
        "Accumulated local effects of every column, 20 bins",
        square("xgb_6", (40_000,), COLUMNS),
        {OURS: ours.ale(20), "PyALE": peers.pyale_ale(20)},
    ),
    Task(
        "ice",
        "The curve of every row along every column, 20 points",
        square("xgb_6", (40_000,), (20, 50)),
        {OURS: ours.ice(20), "sklearn": peers.sklearn_ice(20)},
    ),
    Task(
        "ice_one",
        "The curve of every row along one column, 20 and more points, after the fit; unit: what it "
        "may take, four times predict and a copy of the result, on as many threads",
        tuple(
            Case(model, 10_000, 10_000, 20, threads=threads)
            for model in ("xgb_6", "rf_full")
            for threads in (1, 2)
        ),
        {
            OURS: ours.ice_one(20),
            f"{OURS}: 200 points": ours.ice_one(200),
            f"{OURS}: 2000 points": ours.ice_one(2000),
        },
        keeps_threads=True,
    ),
    Task(
        "shap",
        "Interventional SHAP",
        ALL_SIZES + ALL_MODELS,
        {OURS: ours.shap, "woodelf": peers.woodelf_shap, "shap": peers.shap_shap},
        quick=True,
    ),
    Task(
        "shap_deep",
        "Interventional SHAP of an unpruned forest",
        (Case("rf_full", 200, 200, 20), Case("rf_full", 1_000, 200, 20)),
        {OURS: ours.shap, "shap": peers.shap_shap},
    ),
    Task(
        "shap_path",
        "Path-dependent SHAP",
        ALL_SIZES + ALL_MODELS,
        {
            OURS: ours.shap_path,
            "woodelf": peers.woodelf_shap_path,
            "shap": peers.shap_shap_path,
            "xgboost": peers.xgboost_shap_path,
            "lightgbm": peers.lightgbm_shap_path,
        },
        quick=True,
    ),
    Task(
        "shap_interaction",
        "Interventional SHAP interaction values of the pairs that exist",
        square("xgb_6", (2_000,), COLUMNS),
        {OURS: ours.shap_interaction, "woodelf": peers.woodelf_shap_interaction},
    ),
    Task(
        "shap_interaction_path",
        "Path-dependent SHAP interaction values of the pairs that exist",
        square("xgb_6", (2_000,), COLUMNS),
        {
            OURS: ours.shap_interaction_path,
            "woodelf": peers.woodelf_shap_interaction_path,
            "xgboost": peers.xgboost_shap_interaction_path,
        },
    ),
    Task(
        "pd_deep",
        "Unpruned forest: fit, and every column exactly or on a grid of 5 points",
        square("rf_full", (2_000, 20_000), (20,)),
        {
            OURS: ours.pd_grid(5),
            f"{OURS}: curves": ours.pd_curves,
            "sklearn": peers.sklearn_pd_grid(5),
        },
    ),
    Task(
        "pd_pairs_deep",
        "Unpruned forest: fit, and every pair of columns on a grid of 20 x 20 points",
        square("rf_full", (2_000, 20_000), (20,)),
        {OURS: ours.pd_pairs(20), "sklearn": peers.sklearn_pd_pairs(20)},
    ),
    Task(
        "pd_response",
        "The exact curves of every column on the scale of the response, after and with the fit, by "
        "one thread and two; unit: np.exp over rows x pieces, which takes one thread in both cases",
        tuple(
            Case(f"{kind}_6b{n_bins}", 10_000, 10_000, 20, n_trees=n_trees, threads=threads)
            for kind, n_trees in (("xgblogit", 100), ("xgbpoisson", 100), ("xgbsoftmax", 34))
            for n_bins in (20, 64, 256)
            for threads in (1, 2)
        ),
        {
            OURS: ours.response_curves(with_fit=False),
            f"{OURS}: with fit": ours.response_curves(with_fit=True),
            "sklearn": peers.sklearn_response_curves,
        },
        keeps_threads=True,
    ),
    Task(
        "shap_path_deep",
        "Unpruned forest: path-dependent SHAP",
        (Case("rf_full", 1_000, 200, 20),),
        {OURS: ours.shap_path, "shap": peers.shap_shap_path},
    ),
    Task(
        "shap_interaction_path_deep",
        "Path-dependent SHAP interaction values, depth 10 and unpruned",
        (Case("xgb_10", 1_000, 200, 50), Case("rf_full", 1_000, 200, 20)),
        {OURS: ours.shap_interaction_path, "xgboost": peers.xgboost_shap_interaction_path},
    ),
    Task(
        "components2",
        "Components up to order 2; steep: of a model of fewer pairs",
        square("xgb_6", (1_000, 10_000, 40_000), COLUMNS) + square("xgbsteep_6", (40_000,), (397,)),
        {
            OURS: ours.components2,
            f"{OURS}: out": ours.components2_out,
            f"{OURS}: float32": ours.components2_single,
            f"{OURS}: blocks": ours.components_blocks(2),
            "woodelf": peers.woodelf_components2,
        },
        quick=True,
    ),
    Task(
        "components_any",
        "Components of any order",
        square("xgb_6", (1_000, 10_000), (20, 397)),
        {OURS: ours.components_blocks(None), "woodelf": peers.woodelf_components_any},
    ),
    Task(
        "figure3",
        "Components of any order in the setting of the FastPD paper's figure 3",
        square("xgb_5", (1_000, 2_000, 4_000, 8_000), (7,), n_trees=20),
        {OURS: ours.components_any, "woodelf": peers.woodelf_components_any},
    ),
    Task(
        "small",
        "Interventional SHAP of few rows: all of it, and its parts; once read: fit and transform",
        (Case("xgb_6", 100, 1, 50), Case("xgb_6", 1_000, 1_000, 397)),
        {
            OURS: ours.shap,
            f"{OURS}: read": ours.read_model,
            f"{OURS}: once read": ours.shap_read,
            f"{OURS}: first transform": ours.shap_fitted(refit=True),
            f"{OURS}: transform": ours.shap_fitted(refit=False),
            "woodelf": peers.woodelf_shap,
            "shap": peers.shap_shap,
        },
        quick=True,
    ),
    Task(
        "budget",
        "What a model of 50 columns may cost",
        square("xgb_6", (40_000,), (50,)),
        {
            f"{OURS}: main effects": ours.pd_values,
            f"{OURS}: curves": ours.pd_curves,
            f"{OURS}: SHAP": ours.shap,
        },
    ),
    Task(
        "scaling_background",
        "SHAP of 1000 rows, by rows of the background",
        tuple(Case("xgb_6", n, 1_000, 50) for n in MANY_SIZES),
        {OURS: ours.shap},
    ),
    Task(
        "scaling_rows",
        "SHAP over a background of 1000 rows, by rows explained",
        tuple(Case("xgb_6", 1_000, n, 50) for n in MANY_SIZES),
        {OURS: ours.shap},
    ),
    Task(
        "scaling_trees",
        "SHAP by number of trees",
        tuple(Case("xgb_6", 40_000, 40_000, 50, n_trees=t) for t in (25, 50, 100, 200, 400)),
        {OURS: ours.shap},
    ),
    Task(
        "scaling_threads",
        "SHAP by number of threads",
        tuple(Case("xgb_6", 40_000, 40_000, 50, threads=t) for t in (1, 2)),
        {OURS: ours.shap},
        keeps_threads=True,
    ),
)
