"""Colours of candidates: by score, or by one of their hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.display._style import COLOURS
from fastpd_sklearn.display._text import plain, plain_all, shorten_all

FEW = 8
"""Numbers up to which each has a colour of its own, at equal distances."""

LABEL_WIDTH = 16
"""Characters of a hyperparameter's value."""

LOG_RANGE = 30
"""Ratio of the largest to the smallest number from which on a scale is logarithmic."""

UNORDERED = [colour for colour in COLOURS if colour != "#E69F00"]
"""Colours of values without an order, but for the one that marks the chosen candidate."""

NOT_SET = "not set"


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours, and what they mean.

    Parameters
    ----------
    numbers : ndarray of shape (n_candidates, n_fits)
        What is coloured, in the unit of ``norm``.
    norm : matplotlib Normalize
    cmap : matplotlib Colormap
    label : str
    ticks : list of str, or None
        Labels of the numbers 0, 1, ..., where there are only these.
    extend : {"neither", "min"}
        Whether there are numbers below those that have a colour of their own.
    """

    numbers: np.ndarray
    norm: object
    cmap: object
    label: str
    ticks: list[str] | None = None
    extend: str = "neither"

    def colour(self, candidate: int, fit: int) -> tuple:
        """The colour of a line."""
        return self.cmap(self.norm(self.numbers[candidate, fit]))

    def add_to(self, figure, axes: list):
        """Draw the colour bar beside some axes."""
        from matplotlib.cm import ScalarMappable

        bar = figure.colorbar(
            ScalarMappable(self.norm, self.cmap),
            ax=axes,
            label=plain(self.label),
            extend=self.extend,
        )
        if self.ticks is not None:
            bar.set_ticks(np.arange(len(self.ticks)), labels=plain_all(self.ticks))
            bar.minorticks_off()
        return bar


def colour_scale(result, color_by: str) -> Scale:
    """The scale of the candidates of :func:`candidate_curves`.

    Parameters
    ----------
    result : Bunch
    color_by : str
        "score" or the name of a hyperparameter.

    Returns
    -------
    Scale
    """
    n_fits = result.average[0].shape[1]
    if color_by == "score":
        return _score_scale(result, n_fits)
    known = sorted({name for params in result.params for name in params})
    if color_by not in known:
        raise ValueError(
            f"color_by={color_by!r} is neither 'score' nor a hyperparameter of the search, which "
            f"are {', '.join(map(repr, known))}"
        )
    values = [params.get(color_by, NOT_SET) for params in result.params]
    if all(is_number(value) for value in values) and len(set(values)) > FEW:
        return _continuous_scale(np.array(values, dtype=np.float64), color_by, n_fits)
    return _discrete_scale(values, color_by, n_fits)


def _score_scale(result, n_fits: int) -> Scale:
    from matplotlib.colors import Normalize

    scores = result.mean_test_score[:, None]
    label = "mean test score" if result.scoring == "score" else f"mean test {result.scoring}"
    if result.fold_scores is not None:
        scores = result.fold_scores
        label = label.replace("mean test", "test") + " of the fold"
    scores = np.broadcast_to(scores, (len(result.params), n_fits))
    low, high = _score_limits(scores[np.isfinite(scores)])
    extend = "min" if np.any(scores < low) else "neither"
    return Scale(scores, Normalize(low, high, clip=True), _sequential(), label, extend=extend)


def _score_limits(scores: np.ndarray) -> tuple[float, float]:
    """Limits beyond which a few hopeless candidates do not take all colours."""
    if not len(scores):
        return 0.0, 1.0
    low, quarter, half, high = np.quantile(scores, [0, 0.25, 0.5, 1])
    low = max(low, quarter - 3 * (half - quarter)) if half > quarter else low
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _continuous_scale(values: np.ndarray, label: str, n_fits: int) -> Scale:
    from matplotlib.colors import LogNorm, Normalize

    low, high = values.min(), values.max()
    kind = LogNorm if low > 0 and high / low >= LOG_RANGE else Normalize
    return Scale(_each_fit(values, n_fits), kind(low, high), _sequential(), label)


def _discrete_scale(values: list, label: str, n_fits: int) -> Scale:
    from matplotlib.colors import BoundaryNorm, ListedColormap

    known = {str(value): value for value in values}
    names = sorted(known, key=lambda name: _place(known[name]))
    has_order = any(is_number(value) for value in values) or len(names) > len(UNORDERED)
    colours = _sequential()(np.linspace(0, 1, len(names))) if has_order else UNORDERED
    return Scale(
        _each_fit(np.array([names.index(str(value)) for value in values]), n_fits),
        BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names)),
        ListedColormap(colours[: len(names)]),
        label,
        ticks=shorten_all(names, LABEL_WIDTH),
    )


def _place(value) -> tuple:
    """Numbers first, since None is often no limit; what has not been set comes last."""
    if is_number(value):
        return 0, float(value), ""
    return (2, 0.0, "") if value is NOT_SET else (1, 0.0, str(value))


def _each_fit(values: np.ndarray, n_fits: int) -> np.ndarray:
    return np.broadcast_to(values[:, None], (len(values), n_fits))


def is_number(value) -> bool:
    """Whether the value of a hyperparameter is a number."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _sequential():
    """From light for low to dark for high, without the shades that white paper swallows."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.9, 0.0, 256)))
