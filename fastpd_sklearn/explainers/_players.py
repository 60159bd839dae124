"""The players of the game: columns, or groups of columns, and how users name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np

from fastpd_sklearn.explainers._protocol import Term

MOST_NAMES = 4
"""Columns whose names are the name of a group that the user has not named."""


@dataclass(frozen=True)
class Players:
    """Who plays.

    Parameters
    ----------
    names : tuple of str
        One a player.
    columns : tuple of ndarray of int
        The columns of each player.
    column_names : tuple of str
        One a column.
    tied : frozenset of str
        Names of the groups that the model makes, not the user.
    """

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    column_names: tuple[str, ...]
    tied: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.names)

    def find(self, feature) -> int:
        """The player that a user means.

        Parameters
        ----------
        feature : int or str
            An int is a column, a str the name of a column or group.

        Returns
        -------
        int

        Raises
        ------
        ValueError, TypeError
            If there is none, or the column is only a part of a group.
        """
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        column = find_column(feature, self.column_names, "features", self.names)
        if column in self._alone:
            return self._alone[column]
        group = next(n for n, cols in zip(self.names, self.columns, strict=True) if column in cols)
        remedy = (
            "which a step of the pipeline mixes; name the group"
            if group in self.tied
            else "and plays only with it; name the group, or take the column out of `groups`"
        )
        raise ValueError(f"features: column {feature!r} is part of the group {group!r} {remedy}")

    @cached_property
    def _alone(self) -> dict[int, int]:
        """The players of one column, by that column."""
        single = (k for k, columns in enumerate(self.columns) if len(columns) == 1)
        return {int(self.columns[k][0]): k for k in single}

    def find_term(self, feature) -> tuple[int, ...]:
        """The players that a user means, in the order given.

        Parameters
        ----------
        feature : int, str, or tuple of them

        Returns
        -------
        tuple of int
        """
        if not isinstance(feature, tuple | list):
            return (self.find(feature),)
        term = tuple(self.find(part) for part in feature)
        if not term:
            raise ValueError("features: an empty tuple names no feature")
        if len(set(term)) < len(term):
            raise ValueError(f"features: {tuple(feature)!r} names a feature twice")
        return term

    def renamed(self, column_names) -> Players:
        """The same players after their columns got other names; groups keep theirs."""
        names = tuple(
            column_names[columns[0]] if name == self.column_names[columns[0]] else name
            for name, columns in zip(self.names, self.columns, strict=True)
        )
        return Players(names, self.columns, tuple(column_names), self.tied)

    def name(self, term: Term) -> tuple[str, ...]:
        """Names of the players of a term."""
        return tuple(map(self.names.__getitem__, term))


def make_players(n_columns: int, names, groups, tied=()) -> Players:
    """Columns and groups as players; a group takes the place of its first column.

    Parameters
    ----------
    n_columns : int
    names : sequence of str or None
        Column names; None: "x0", "x1", ...
    groups : mapping of str to (sequence of) int or str, or None
    tied : sequence of (str, list of int), default=()
        Columns that must play together, and the steps of a pipeline that mix them. They are a
        group of their own if they are in none of ``groups``.

    Returns
    -------
    Players

    Raises
    ------
    ValueError, TypeError
        If the groups are empty, overlap, name an unknown column or tear apart what is tied,
        or if two players would have the same name.
    """
    column_names = tuple(names) if names is not None else tuple(f"x{j}" for j in range(n_columns))
    owner: dict[int, str] = {}
    members = {}
    for group, columns in _as_mapping(groups).items():
        members[group] = _group_columns(group, columns, column_names)
        for column in members[group]:
            if column in owner:
                raise ValueError(
                    f"groups: column {column_names[column]!r} is both in {owner[column]!r} and in "
                    f"{group!r}; a column belongs to one group at most"
                )
            owner[column] = group
    made = _tied_groups(tied, column_names, owner)
    for group, columns in made.items():
        members[group] = columns
        owner.update(dict.fromkeys(columns, group))
    single = [(column_names[j], [j]) for j in range(n_columns) if j not in owner]
    ordered = sorted([*single, *members.items()], key=lambda player: player[1][0])
    player_names = tuple(name for name, _ in ordered)
    name, count = Counter(player_names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"two features are called {name!r}; rename a column or a group, since the outputs "
            "are told apart by these names"
        )
    columns = tuple(np.array(columns, dtype=np.intp) for _, columns in ordered)
    return Players(player_names, columns, column_names, frozenset(made))


def _tied_groups(tied, column_names, owner: dict[int, str]) -> dict[str, list[int]]:
    """The groups that are to be made of tied columns, by name."""
    made = {}
    for step, columns in tied:
        groups = {owner.get(j) for j in columns}
        if groups == {None}:
            made[f"{step}({_shortened([column_names[j] for j in columns])})"] = columns
        elif len(groups) > 1:
            group = next(iter(groups - {None}))
            inside, outside = (
                next(column_names[j] for j in columns if (owner.get(j) == group) is within)
                for within in (True, False)
            )
            raise ValueError(
                f"groups[{group!r}] has {inside!r} but not {outside!r}, and step {step!r} of the "
                f"pipeline mixes these columns; put all of them into one group: "
                f"{[column_names[j] for j in columns]}"
            )
    return made


def _shortened(names: list[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 1])}, ... {len(names)} columns"


def as_list(features) -> list:
    """The parameter ``features``, other than None, as a list.

    Parameters
    ----------
    features : int, str, or a list of them or of tuples of them

    Returns
    -------
    list

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or empty.
    """
    if isinstance(features, str | Integral):
        return [features]
    if not isinstance(features, list | tuple | np.ndarray):
        raise TypeError(
            f"features={features!r} should be a list of columns, names, or tuples of them"
        )
    if not len(features):
        raise ValueError("features is empty; name at least one feature, or None for all")
    return list(features)


def _as_mapping(groups) -> Mapping:
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups={groups!r} should be a dict from a group's name to its columns, such as "
            "{'address': ['zip', 'city']}"
        )
    return groups


def _group_columns(group, columns, column_names) -> list[int]:
    if not isinstance(group, str):
        raise TypeError(f"groups: the name {group!r} should be a str")
    if isinstance(columns, str | Integral):
        columns = [columns]
    found = [find_column(c, column_names, f"groups[{group!r}]", column_names) for c in columns]
    if not found:
        raise ValueError(f"groups: {group!r} has no column; name at least one or drop the group")
    if len(set(found)) < len(found):
        raise ValueError(f"groups: {group!r} names a column twice")
    return sorted(found)


def find_column(key, column_names, argument: str, known) -> int:
    """The number of the column that a user means; ``argument`` and ``known`` are for messages."""
    if isinstance(key, str):
        if column_names.count(key) == 1:
            return column_names.index(key)
        raise ValueError(f"{argument}: unknown feature {key!r}; known are {_listed(known)}")
    if isinstance(key, bool | np.bool_) or not isinstance(key, Integral):
        raise TypeError(f"{argument}: {key!r} is neither a column number (int) nor a name (str)")
    if not 0 <= key < len(column_names):
        raise ValueError(
            f"{argument}: column {key} does not exist; columns are numbered from 0 to "
            f"{len(column_names) - 1}"
        )
    return int(key)


def _listed(names) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return f"{shown}, ..." if len(names) > 20 else shown
