"""Partial dependence by its definition, in a few lines that know nothing of the package."""

import numpy as np


def by_definition(respond, frame, name, points, weights=None):
    """Mean response of a pandas frame with one column set to each point, outputs first."""
    means = []
    for point in points:
        changed = frame.copy()
        changed[name] = filled(frame[name], point)
        response = np.asarray(respond(changed), dtype=np.float64)
        means.append(np.average(response, axis=0, weights=weights))
    return np.array(means).reshape(len(points), -1).T


def filled(series, point):
    """A column that holds one value, of the same dtype where that has the value."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return pd.Series([point] * len(series), index=series.index, dtype=series.dtype)
    return pd.Series(point, index=series.index)


def close(found, wanted, rel=1e-6, single=False):
    """Whether two responses agree to ``rel`` of the range of the second.

    Of its size, if the model itself predicts in single precision.
    """
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max() if single or not np.ptp(wanted) else np.ptp(wanted)
    return np.abs(found - wanted).max() <= rel * scale
