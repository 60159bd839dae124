"""How many threads the core uses."""

import os

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
        None: the OpenMP default, so that ``OMP_NUM_THREADS`` and ``threadpoolctl`` are heard.
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
    if n_jobs is not None and n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, a positive number or -1 for all")
    if _in_fork:
        return 1
    if n_jobs is None:
        return max(1, omp_get_max_threads())
    if n_jobs < 0:
        return max(1, omp_get_num_procs() + 1 + n_jobs)
    return min(n_jobs, 1024) if omp_get_num_procs() > 1 else 1
