"""How many threads the core uses."""

import os
from contextlib import contextmanager
from contextvars import ContextVar

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #else
    static int omp_get_max_threads(void) { return 1; }
    static int omp_get_num_procs(void) { return 1; }
    #endif
    """
    int omp_get_max_threads() noexcept nogil
    int omp_get_num_procs() noexcept nogil


NODES_A_THREAD = 2**15
"""Nodes of a forest that are worth a thread of their own where they are gone through once."""

_preferred = ContextVar("n_jobs", default=None)
_in_fork = False


def _after_fork():
    # A thread pool does not survive a fork, and the runtimes hang in the child's first parallel
    # region. One thread needs no pool.
    global _in_fork
    _in_fork = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def effective_n_threads(n_jobs=None):
    """Number of threads that `n_jobs` means, as scikit-learn counts OpenMP threads.

    Parameters
    ----------
    n_jobs : int or None
        None: as :func:`preferring` says; by default as OpenMP does, so that ``OMP_NUM_THREADS``
        and ``threadpoolctl`` are heard.
        Negative: all processors but ``-1 - n_jobs``.

    Returns
    -------
    int
        At least 1; 1 without OpenMP and in a forked process.

    Raises
    ------
    ValueError
        If `n_jobs` is 0.
    """
    n_jobs = _preferred.get() if n_jobs is None else n_jobs
    if n_jobs is not None and n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, a positive number or -1 for all")
    if _in_fork:
        return 1
    if n_jobs is None:
        return max(1, omp_get_max_threads())
    if n_jobs < 0:
        return max(1, omp_get_num_procs() + 1 + n_jobs)
    return min(n_jobs, 1024) if omp_get_num_procs() > 1 else 1


@contextmanager
def preferring(n_jobs):
    """Let `n_jobs` be what None means, for what is done within.

    It reaches what has no `n_jobs` of its own: the reading of a model, and what is made of the nodes.

    Parameters
    ----------
    n_jobs : int or None
        None changes nothing.
    """
    token = _preferred.set(_preferred.get() if n_jobs is None else n_jobs)
    try:
        yield
    finally:
        _preferred.reset(token)


def threads_for_nodes(int64_t n_nodes):
    """Number of threads for one pass over the nodes of a forest.

    Parameters
    ----------
    n_nodes : int

    Returns
    -------
    int
        Starting them must not cost more than they save.
    """
    return max(1, min(effective_n_threads(), n_nodes // NODES_A_THREAD))
