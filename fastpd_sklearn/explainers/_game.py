"""Indices of a game whose value is known for every set of players."""

from __future__ import annotations

import numpy as np

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
    index : {"component", "shap", "banzhaf"}
    term : tuple of int
        A non-empty set.

    Returns
    -------
    ndarray of shape (...)
        With ``k`` the number of players that ``S`` has beyond the term: ``sum over S of
        m_S / (k + 1)`` (Shapley interaction; Grabisch and Roubens 1999) or
        ``m_S / 2 ** k`` (Banzhaf interaction).
    """
    mask = mask_of(term)
    if index == "component":
        return components[mask]
    masks = np.arange(len(components))
    masks = masks[masks & mask == mask]
    beyond = np.bitwise_count(masks) - len(term)
    weights = 1.0 / (beyond + 1.0) if index == "shap" else 0.5**beyond
    return np.tensordot(weights, components[masks], axes=1)
