"""The reproduced papers: each script runs, and what it prints is what the paper claims."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xgboost

PAPERS = Path(__file__).parents[1] / "examples" / "papers"


def run(script: str, folder: Path, *arguments: str) -> str:
    """What a script prints; one thread, as the machine may have no more to give."""
    done = subprocess.run(
        [sys.executable, PAPERS / script, *arguments],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def load(script: str):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(Path(script).stem, PAPERS / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_drawn(*paths: Path) -> None:
    """A picture is there, and it is not empty."""
    for path in paths:
        picture = matplotlib.image.imread(path)
        assert min(picture.shape[:2]) > 300
        assert picture.std() > 0.1


def numbers(text: str, start: str) -> list[float]:
    """Numbers in the line that begins so."""
    line = re.search(rf"^{re.escape(start)}(.*)$", text, re.MULTILINE)[1]
    return [float(x) for x in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]\d+)?", line)]


def test_fastpd_errors_fall_and_path_dependent_ones_do_not(tmp_path):
    text = run("plot_fastpd_accuracy.py", tmp_path)
    table = text.partition("median over the runs")[2]
    of_100 = numbers(table, "FastPD-100 ")
    of_500 = numbers(table, "FastPD-500 ")
    small, large = numbers(table, "FastPD  ")
    path_small, path_large = numbers(table, "path-dependent ")
    assert small < of_100[0]
    assert large < of_500[0] < of_100[1]
    assert large < small / 4
    assert path_large > path_small / 2
    assert path_large > 20 * large
    assert_drawn(*(tmp_path / f"fastpd_figure_{k}.png" for k in (1, 2, 4)))


def test_cells_have_the_probabilities_of_the_normal_distribution():
    script = load("plot_fastpd_accuracy.py")
    first = np.array([-np.inf, -1.2, -0.1, 0.05, 2.5, np.inf])
    second = np.array([-np.inf, -0.7, 1.1, np.inf])
    found = script.cell_probabilities(first, second)
    normal = scipy.stats.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]])
    below = [[normal.cdf([a, b]) for b in (-40, -0.7, 1.1, 40)] for a in (-40, *first[1:-1], 40)]
    np.testing.assert_allclose(found, np.diff(np.diff(below, axis=0), axis=1), atol=1e-6)
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_the_true_distribution_agrees_with_a_large_sample():
    script = load("plot_fastpd_accuracy.py")
    X, y = script.make_data(300, seed=5)
    model = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(X, y), 10)
    rows = X[:4]
    component, shap = script.under_the_true_distribution(model, rows)
    sample, _ = script.make_data(200_000, seed=6)
    mean = script.predict(model, sample).mean()
    for row, m1, phi in zip(rows, component, shap, strict=True):
        fixed = [sample.copy(), sample.copy()]
        fixed[0][:, 0], fixed[1][:, 1] = row
        v1, v2 = (script.predict(model, x).mean() for x in fixed)
        assert m1 == pytest.approx(v1 - mean, abs=0.03)
        v12 = script.predict(model, row[None])[0]
        assert phi == pytest.approx((v1 - mean + v12 - v2) / 2, abs=0.03)


def test_fastpd_is_linear_and_shap_is_quadratic(tmp_path):
    pytest.importorskip("shap")
    text = run("plot_fastpd_runtime.py", tmp_path)
    assert float(re.search(r"differ by at most (\S+)", text)[1]) < 1e-5
    ours = float(re.search(r"FastPD: all components .*ours: (\S+)", text)[1])
    theirs = float(re.search(r"shap: .*ours: (\S+)", text)[1])
    assert ours < 1.6 < theirs
    blocks = text.split("CPU seconds")
    # 1000 rows keep shap busy longer than 64 000 rows keep us.
    assert numbers(blocks[1], "   64000")[0] < numbers(blocks[2], "    1000")[0]
    assert_drawn(tmp_path / "fastpd_figure_3.png")


def test_the_run_time_is_drawn_without_shap(tmp_path, monkeypatch):
    script = load("plot_fastpd_runtime.py")
    monkeypatch.setattr(script, "shap", None)
    monkeypatch.setattr(script, "LARGE", [2000])
    monkeypatch.setattr(sys, "argv", ["plot_fastpd_runtime.py"])
    monkeypatch.chdir(tmp_path)
    script.main()
    assert_drawn(tmp_path / "fastpd_figure_3.png")


def test_a_shap_value_of_zero_hides_two_effects(tmp_path):
    text = run("plot_glex_shap.py", tmp_path)
    for row, truth in (("SHAP value", 0), ("main effect", 0.4), ("half of the interaction", -0.4)):
        paper, *ours = numbers(text, row)
        assert paper == truth
        assert ours == pytest.approx([truth, truth], abs=0.08)
    assert_drawn(tmp_path / "glex_figure_1.png")


def test_importance_tells_orders_apart_without_the_bicycles(tmp_path):
    text = run("plot_glex_bike.py", tmp_path)
    assert "--fetch" in text
    main, pairs, threes = (
        np.array([numbers(text, f"x{k} ")[at] for k in (1, 2, 3, 4)]) for at in (1, 3, 5)
    )
    assert np.all(main[[0, 2]] > 8 * main[[1, 3]])
    assert np.all(pairs[[1, 2]] > 3 * pairs[[0, 3]])
    assert np.all(threes[1:] > 2 * threes[0])
    assert_drawn(tmp_path / "glex_figure_4.png")
    assert not (tmp_path / "glex_figure_3.png").exists()


def made_up_bikes() -> pd.DataFrame:
    """Commuters on working days and walkers when it is warm, in the columns of UCI."""
    rng = np.random.default_rng(0)
    hour, day = np.tile(np.arange(24), 120), np.repeat(np.arange(120), 24)
    work = (day % 7 < 5).astype(int)
    temp = np.clip(0.5 + 0.2 * np.sin(day / 10) + rng.normal(0, 0.1, len(hour)), 0.02, 1)
    rush = np.isin(hour, [8, 17])
    count = 50 + 150 * rush * (0.5 + work) + 200 * temp * (hour > 6) * (1 - work)
    return pd.DataFrame(
        {
            "yr": 0,
            "hr": hour,
            "temp": temp,
            "windspeed": rng.random(len(hour)),
            "workingday": work,
            "hum": rng.random(len(hour)),
            "cnt": count,
        }
    )


def test_bicycles_are_read_from_a_file(tmp_path):
    made_up_bikes().to_csv(tmp_path / "hour.csv")
    text = run("plot_glex_bike.py", tmp_path, "--data", "hour.csv")
    assert re.search(r"peaks at 8 and at 17$", text, re.MULTILINE)
    assert_drawn(tmp_path / "glex_figure_3.png", tmp_path / "glex_figure_4.png")


def test_tables_of_bicycles_come_to_the_same():
    script = load("plot_glex_bike.py")
    uci = made_up_bikes()
    expected, count = script.tidy_bikes(uci)
    assert list(expected.columns) == script.COLUMNS
    assert expected["day"].iloc[[0, 23, 24, -1]].tolist() == [1, 1, 2, 120]
    names = {"yr": "year", "hr": "hour", "hum": "humidity", "cnt": "count"}
    openml = uci.rename(columns=names).assign(
        temp=41 * uci["temp"], workingday=uci["workingday"].map({0: "False", 1: "True"})
    )
    later = openml.assign(year=1)
    both = pd.concat([openml, later]).astype({"workingday": "category"})
    islr = uci.drop(columns="yr").rename(columns={"cnt": "bikers"})
    for frame in (both, islr):
        X, y = script.tidy_bikes(frame)
        pd.testing.assert_frame_equal(X, expected)
        np.testing.assert_array_equal(y, count)


def test_another_table_is_refused():
    script = load("plot_glex_bike.py")
    with pytest.raises(SystemExit, match=r"lacks.*'hum'"):
        script.tidy_bikes(made_up_bikes().drop(columns="hum"))


def test_a_file_that_is_not_there_is_named():
    script = load("plot_glex_bike.py")
    with pytest.raises(SystemExit, match=r"--data none\.csv cannot be read: No such file"):
        script.read_bikes("none.csv", fetch=False)


def test_without_a_network_the_other_way_is_named(monkeypatch):
    script = load("plot_glex_bike.py")

    def unreachable(*arguments, **keywords):
        raise URLError("no network")

    monkeypatch.setattr(script, "fetch_openml", unreachable)
    with pytest.raises(SystemExit, match=r"no network.*--data FILE"):
        script.read_bikes(None, fetch=True)


def test_removal_keeps_what_is_due_to_hours(tmp_path):
    text = run("plot_glex_removal.py", tmp_path)
    blocks = text.split("hours spread by ")[1:]
    ours = [
        {name: numbers(block, name)[0] for name in ("full", "refitted", "decomposed")}
        for block in blocks
    ]
    assert len(ours) == 4
    for block in ours:
        assert block["full"] == pytest.approx(29.79, abs=0.5)
        assert block["refitted"] == pytest.approx(29.79, abs=0.5)
    # The paper has 10.57 in the first, where ties decide; the others say why.
    assert 3 < ours[0]["decomposed"] < 12
    assert ours[1]["decomposed"] == pytest.approx(29.79, abs=0.5)
    for block in ours[2:]:
        assert block["decomposed"] == pytest.approx(10, abs=1)
    assert_drawn(tmp_path / "glex_figure_5.png")


def test_woodelf_checks_hold_and_samples_miss_steps(tmp_path):
    text = run("plot_woodelf_full_pdp.py", tmp_path)
    checks = (
        "one feature, brute",
        "one feature, recursion",
        "10 pairs, brute",
        "all orders, definition",
    )
    for check in checks:
        paper, ours = numbers(text, check)
        assert ours < 1e-10 < paper
    height = float(re.search(r"on salary: .*range (\S+)", text)[1])
    missed = re.findall(r"k = +\d+: off by up to +(\S+)", text.partition("on hour")[0])
    assert len(missed) == 3
    assert min(map(float, missed)) > height / 2
    assert_drawn(tmp_path / "woodelf_figure_6.png")
