"""The game with as few players as a question needs.

What some features do, alone or together, depends on the others only as a whole: ``v_S`` is the
mean over a background from which all other columns are taken together. As one player they cost a
leaf one bit, where each for itself has its own in the masks of deep trees.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np

from fastpd_sklearn.explainers._players import Players, make_players
from fastpd_sklearn.forest import _rows


def columns_as_players(X) -> Players:
    """Each column of ``X`` by itself, to look up what users mean."""
    return make_players(X.shape[1], _rows.column_names(X), None)


def as_list(features) -> list:
    """A list of features, of which there may be a single one."""
    if isinstance(features, str | Integral):
        return [features]
    if not isinstance(features, list | tuple | range | np.ndarray):
        raise TypeError(
            f"features={features!r} should be a list of columns by number or name, or a single one"
        )
    return list(features)


def others_together(players: Players, columns) -> dict[str, list[int]]:
    """All but some columns as a group, to be passed as ``groups``.

    Parameters
    ----------
    players : Players
        Of :func:`columns_as_players`.
    columns : iterable of int

    Returns
    -------
    dict of str to list of int
        Empty if there are no others; the name of the group is that of no column.
    """
    others = sorted(set(range(len(players))).difference(columns))
    name = "others"
    while name in players.names:
        name += "_"
    return {name: others} if others else {}
