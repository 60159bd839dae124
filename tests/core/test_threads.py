"""How many threads are used, also after a fork and beside limits that others set."""

import os
import subprocess
import sys

import pytest
from fastpd_sklearn.core.threads import effective_n_threads, preferring, threads_for_nodes
from threadpoolctl import threadpool_limits

FORK = """
import os
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.core.threads import effective_n_threads

X = np.random.default_rng(0).normal(size=(3000, 4))
model = RandomForestRegressor(n_estimators=5, max_depth=5, random_state=0).fit(X, X[:, 0] * X[:, 1])
explainer = FastPDExplainer(output="shap", n_jobs=2).fit(model, X)
values = explainer.transform(X)  # starts the threads that the child will lack
child = os.fork()
if child == 0:
    same = np.array_equal(explainer.transform(X), values)
    os._exit(0 if same and effective_n_threads(2) == 1 else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_zero_is_an_error():
    with pytest.raises(ValueError, match="n_jobs=0"):
        effective_n_threads(0)


def test_numbers():
    n_processors = effective_n_threads(-1)
    assert n_processors >= 1
    assert effective_n_threads(1) == 1
    assert effective_n_threads(-1000) == 1
    assert effective_n_threads(-2) == max(1, n_processors - 1)
    assert effective_n_threads(2) in (1, 2)


def test_limits_of_others_are_heard():
    with threadpool_limits(limits=1, user_api="openmp"):
        assert effective_n_threads(None) == 1
    assert effective_n_threads(None) >= 1


def test_what_is_preferred_is_what_none_means():
    by_default = effective_n_threads()
    with preferring(1):
        assert effective_n_threads() == 1
        assert threads_for_nodes(10**9) == 1
        with preferring(None):
            assert effective_n_threads() == 1
        assert effective_n_threads(2) in (1, 2)
    with pytest.raises(RuntimeError), preferring(1):
        raise RuntimeError
    assert effective_n_threads() == by_default
    assert threads_for_nodes(1) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_uses_one_thread(tmp_path):
    """It would hang if it waited for the threads of its parent."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        cwd=tmp_path,  # not the checkout, whose sources may hide the installed package
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
