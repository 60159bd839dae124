"""Accumulated local effects by loops, from their definition alone."""

import numpy as np


def place_in_bins(x, edges):
    """The bin ``(edges[k], edges[k + 1]]`` of a number, the first one closed."""
    return max(int(np.sum(np.asarray(edges) < x)) - 1, 0)


def moved(X, i, changes):
    """Row ``i`` with some columns changed, as a matrix of one row."""
    row = np.array(X[[i]], dtype=np.float64)
    for j, value in changes.items():
        row[0, j] = value
    return row


def first_order(predict, X, j, edges, weights=None):
    """Effect at the edges, zero in the mean of the data; mean local effects; rows by bin."""
    weights = np.ones(len(X)) if weights is None else weights
    n_bins = len(edges) - 1
    local = [[] for _ in range(n_bins)]
    mass = [[] for _ in range(n_bins)]
    for i, x in enumerate(X[:, j]):
        if np.isnan(x):
            continue
        k = place_in_bins(x, edges)
        step = predict(moved(X, i, {j: edges[k + 1]})) - predict(moved(X, i, {j: edges[k]}))
        local[k].append(float(step[0]))
        mass[k].append(weights[i])
    mean = [np.average(d, weights=w) for d, w in zip(local, mass, strict=True)]
    total = np.concatenate([[0.0], np.cumsum(mean)])
    known = ~np.isnan(X[:, j])
    at_data = np.interp(X[known, j], edges, total)
    return total - np.average(at_data, weights=weights[known]), np.array(mean), local


def second_order(predict, X, columns, edges):
    """Accumulated second differences, before anything is taken away, and cells without rows."""
    n = [len(e) - 1 for e in edges]
    cells = [[[] for _ in range(n[1])] for _ in range(n[0])]
    for i in range(len(X)):
        k, m = (place_in_bins(X[i, j], e) for j, e in zip(columns, edges, strict=True))

        def at(a, b, i=i):
            values = dict(zip(columns, (edges[0][a], edges[1][b]), strict=True))
            return float(predict(moved(X, i, values))[0])

        cells[k][m].append((at(k + 1, m + 1) - at(k, m + 1)) - (at(k + 1, m) - at(k, m)))
    empty = np.array([[not cell for cell in row] for row in cells])
    local = np.array([[np.mean(cell) if cell else np.nan for cell in row] for row in cells])
    middle = [(np.array(e[1:]) + e[:-1]) / 2 / (e[-1] - e[0]) for e in edges]
    for k, m in np.argwhere(empty):
        best = min(
            np.argwhere(~empty).tolist(),
            key=lambda c: (
                (middle[0][c[0]] - middle[0][k]) ** 2 + (middle[1][c[1]] - middle[1][m]) ** 2
            ),
        )
        local[k, m] = local[tuple(best)]
    total = np.zeros((n[0] + 1, n[1] + 1))
    total[1:, 1:] = local.cumsum(axis=0).cumsum(axis=1)
    return total, empty


def bilinear(surface, edges, x):
    """A surface between its points, for rows of two numbers."""
    out = []
    for pair in x:
        k, m = (place_in_bins(v, e) for v, e in zip(pair, edges, strict=True))
        u, v = (
            (value - e[p]) / (e[p + 1] - e[p])
            for value, e, p in zip(pair, edges, (k, m), strict=True)
        )
        corner = surface[k : k + 2, m : m + 2]
        out.append(np.array([1 - u, u]) @ corner @ np.array([1 - v, v]))
    return np.array(out)
