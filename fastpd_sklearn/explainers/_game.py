"""Indices of a game whose value is known for every set of players."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.explainers._protocol import Term


def moebius(values: np.ndarray) -> np.ndarray:
    """The Möbius transform ``m_S = sum over U within S of (-1)^(|S| - |U|) v_U``.

    Parameters
    ----------
    values : ndarray of shape (2 ** n_players, ...)
        ``v``, by sets as bit masks.

    Returns
    -------
    ndarray of shape (2 ** n_players, ...)
    """
    out = values.copy()
    half = 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half, *out.shape[1:])
        pairs[:, 1] -= pairs[:, 0]
        half *= 2
    return out


def mask_of(term: Term) -> int:
    """A set of players as a bit mask."""
    return sum(1 << k for k in term)


def interaction_index(components: np.ndarray, index: str, term: Term) -> np.ndarray:
    """One index of one set, from all components.

    Parameters
    ----------
    components : ndarray of shape (2 ** n_players, ...)
        From :func:`moebius`.
    index : str
        A key of ``INDICES``.
    term : tuple of int
        A non-empty set.

    Returns
    -------
    ndarray of shape (...)
        The sum over the sets ``S`` that contain the term of ``m_S`` times the integral of
        ``t ** k`` over the index's measure, ``k`` being the number of players that ``S`` has
        beyond the term: ``m_S / (k + 1)`` for the Shapley interaction (Grabisch and Roubens
        1999), ``m_S / 2 ** k`` for the Banzhaf interaction.
    """
    mask = mask_of(term)
    masks = np.arange(len(components))
    masks = masks[masks & mask == mask]
    beyond = np.bitwise_count(masks) - len(term)
    moments = np.array([INDICES[index].moment(k) for k in range(int(beyond.max()) + 1)])
    return np.tensordot(moments[beyond], components[masks], axes=1)
