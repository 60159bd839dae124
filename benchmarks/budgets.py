"""What the tasks may cost; the report says which of these hold, and no run fails on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.cases import Case
from benchmarks.tasks import OURS

INF = float("inf")


@dataclass(frozen=True)
class Budget:
    """Limits for the cases of a task that are as ``where`` says.

    ``x_predict`` is a multiple of ``predict``, ``x_unit`` of the task's own unit, ``mib`` the peak
    memory, ``x_peer`` how many times faster than each peer, ``milliseconds`` an absolute time.
    Limits of SHAP include those of its fit.
    """

    task: str
    where: dict
    x_predict: float = INF
    x_unit: float = INF
    mib: float = INF
    x_peer: dict[str, float] = field(default_factory=dict)
    milliseconds: float = INF
    contender: str = OURS

    def applies(self, task: str, contender: str, case: Case) -> bool:
        same = (task, contender) == (self.task, self.contender)
        return same and all(getattr(case, name) == value for name, value in self.where.items())


LARGE = {"model": "xgb_6", "n_background": 400_000, "n_rows": 400_000}
MODELS = ("lgb_31", "lgb_255", "hgb_6", "rf_10")

BUDGETS = (
    Budget("budget", {}, x_predict=50, mib=1024, contender=f"{OURS}: main effects"),
    Budget("budget", {}, x_predict=50, mib=1024, contender=f"{OURS}: curves"),
    Budget("budget", {}, x_predict=150, mib=1024, contender=f"{OURS}: SHAP"),
    Budget("fit", {**LARGE, "n_columns": 50}, x_predict=2),
    Budget("fit", {**LARGE, "n_columns": 397}, x_predict=3),
    Budget("pd_curves", {**LARGE, "n_columns": 50}, x_predict=2.1),
    Budget("pd_grid", {**LARGE, "n_columns": 397}, x_peer={"woodelf": 10}),
    Budget("pd_grid100", {**LARGE, "n_columns": 397}, x_peer={"woodelf": 10}),
    Budget("pd_pairs", {**LARGE, "n_columns": 397}, x_peer={"woodelf": 10}),
    Budget("pd_pairs100", {**LARGE, "n_columns": 50}, x_peer={"woodelf": 10}),
    Budget("pd_deep", {"n_rows": 20_000}, x_predict=5, contender=f"{OURS}: curves"),
    Budget("pd_deep", {"n_rows": 2_000}, x_peer={"sklearn": 15}),
    # ten times as long as the curves may take
    Budget("pd_pairs_deep", {"n_rows": 20_000}, x_predict=50),
    Budget("ale", {"n_columns": 50}, x_predict=10, x_peer={"PyALE": 20}),
    Budget("ice", {"n_columns": 50}, x_peer={"sklearn": 20}),
    Budget("ice_one", {}, x_unit=1),
    Budget("ice_one", {}, x_unit=1, contender=f"{OURS}: 200 points"),
    Budget("ice_one", {}, x_unit=1, contender=f"{OURS}: 2000 points"),
    Budget("pd_response", {}, x_unit=10),
    Budget("shap", {**LARGE, "n_columns": 50}, x_predict=12),
    Budget("shap", {**LARGE, "n_columns": 397}, x_predict=13, mib=1402, x_peer={"woodelf": 10}),
    Budget("shap_path", {**LARGE, "n_columns": 397}, x_predict=10, x_peer={"xgboost": 50}),
    Budget("shap_interaction", {"n_columns": 397}, x_peer={"woodelf": 10}),
    *(
        Budget(
            "components2",
            {"n_columns": 397, "n_rows": 40_000},
            x_peer={"woodelf": 10},
            contender=name,
        )
        for name in (OURS, f"{OURS}: out", f"{OURS}: float32", f"{OURS}: blocks")
    ),
    Budget(
        "components_any",
        {"n_columns": 397, "n_rows": 10_000},
        x_peer={"woodelf": 5},
        mib=300,
    ),
    Budget("small", {"n_rows": 1_000}, x_peer={"woodelf": 15, "shap": 300}),
    Budget("small", {"n_rows": 1}, milliseconds=15),
    Budget("small", {"n_rows": 1}, milliseconds=10, contender=f"{OURS}: read"),
    Budget("small", {"n_rows": 1}, milliseconds=5, contender=f"{OURS}: once read"),
    Budget("small", {"n_rows": 1}, milliseconds=5, contender=f"{OURS}: first transform"),
    Budget("small", {"n_rows": 1}, milliseconds=5, contender=f"{OURS}: transform"),
    Budget("read", {"n_columns": 50}, milliseconds=10),
    Budget("figure3", {"n_rows": 8_000}, x_peer={"woodelf": 5}),
    *(Budget("fit", {"model": model}, x_predict=3) for model in MODELS),
    *(Budget("shap", {"model": model}, x_predict=18) for model in MODELS),
)
