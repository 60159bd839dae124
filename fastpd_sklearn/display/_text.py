"""Words in figures: names that are short and still different, and numbers."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.forest import _frames


def plain(text) -> str:
    """A text in which dollars are dollars, and no formulas."""
    return str(text).replace("$", r"\$")


def plain_all(texts) -> list[str]:
    """:func:`plain` of several."""
    return [plain(text) for text in texts]


def shorten(name, width: int) -> str:
    """A name of at most so many characters: start and end, where names differ.

    Parameters
    ----------
    name : object
    width : int

    Returns
    -------
    str
    """
    name = " ".join(str(name).split())
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def shorten_all(names, width: int) -> list[str]:
    """Short names that are still different from each other where the names are.

    Parameters
    ----------
    names : iterable of object
    width : int

    Returns
    -------
    list of str
        Names that would look the same show the place where they begin to differ instead of
        their start.
    """
    names = [" ".join(str(name).split()) for name in names]
    short = [shorten(name, width) for name in names]
    for text in {text for text in short if short.count(text) > 1}:
        alike = [i for i, other in enumerate(short) if other == text]
        begin = _n_common([names[i] for i in alike]) - width // 4
        for i in alike:
            short[i] = _shorten_from(names[i], max(begin, 0), width)
    return short


def _n_common(names: list[str]) -> int:
    """How many letters some names begin with in common."""
    return next(
        (n for n, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1),
        min(map(len, names)),
    )


def _shorten_from(name: str, begin: int, width: int) -> str:
    text = f"…{name[begin:]}" if begin > 0 else name
    return text if len(text) <= width else f"{text[: width - 1]}…"


def short_names(names, size: int, width: int) -> dict[str, str]:
    """Short names of features in labels of so many of them.

    Parameters
    ----------
    names : iterable of str
        All features, from which each is to be told.
    size : int
        Features in a label.
    width : int
        Of a label of one feature; one of several is up to half as long again.

    Returns
    -------
    dict of str to str
    """
    names = list(names)
    room = width if size == 1 else max(8, 3 * width // (2 * size))
    return dict(zip(names, shorten_all(names, room), strict=True))


def term_labels(terms, names, width: int) -> list[str]:
    """Short labels of sets of features.

    Parameters
    ----------
    terms : list of tuple of str
    names : iterable of str
    width : int
        See :func:`short_names`.

    Returns
    -------
    list of str
    """
    short = {size: short_names(names, size, width) for size in {len(term) for term in terms}}
    return [" × ".join(short[len(term)][name] for name in term) for term in terms]


def short_number(value) -> str:
    """A number with four digits, or with all digits before the point."""
    text = f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
    return text.replace("-", "−")


def short_value(value) -> str:
    """A value of a feature: a number, a label, or that it is missing."""
    if _frames.is_missing(value):
        return "missing"
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return short_number(value) if is_number else shorten(value, 18)
