"""Numbers along an axis: as many as have room beside each other."""

from __future__ import annotations

from functools import cache, partial

from fastpd_sklearn.display._text import short_number

MOST_NUMBERS = 5
"""Intervals between the numbers of an axis."""

DIGIT = 0.09
"""Width of a digit of a label, in inches."""

PLAIN = (-6, 9)
"""Powers of ten that are written out: others stand by themselves, where the axis has its name."""


def set_numbers(side, missing: tuple[float, float] | None = None) -> None:
    """Put numbers along an axis, none of which touches another.

    Parameters
    ----------
    side : matplotlib Axis
        Horizontal or vertical.
    missing : tuple of float, default=None
        Where the numbers end, and the place of missing ones behind it, which is called "NaN".
    """
    side.set_major_locator(_locator_class()(missing))
    if missing is not None:
        side.set_major_formatter(partial(_number_or_nan, end=missing[0]))
    elif side.axis_name == "x":
        side.get_major_formatter().set_powerlimits(PLAIN)


def _number_or_nan(value: float, position: int | None = None, *, end: float) -> str:
    return "NaN" if value > end else short_number(value)


@cache
def _locator_class():
    """The class, which cannot be made before somebody draws: matplotlib is optional."""
    from matplotlib.ticker import MaxNLocator

    class NumberLocator(MaxNLocator):
        """Looks at the room when the figure is drawn: layouts change it until then."""

        def __init__(self, missing=None):
            super().__init__(MOST_NUMBERS)
            self.missing = missing

        def __call__(self):
            for n in range(MOST_NUMBERS, 0, -1):
                self.set_params(nbins=n)
                ticks = self._with_missing(super().__call__())
                if self.axis.axis_name != "x" or _fit(self.axis, ticks):
                    return ticks
            return _ends(self.axis, ticks)

        def _with_missing(self, ticks):
            if self.missing is None:
                return ticks
            end, place = self.missing
            numbers = [tick for tick in _visible(self.axis, ticks) if tick <= end]
            while (
                numbers and self.axis.axis_name == "x" and not _fit(self.axis, [numbers[-1], place])
            ):
                numbers.pop()
            return [*numbers, place]

        def __reduce__(self):
            return _new_locator, (), vars(self)

    return NumberLocator


def _new_locator():
    """For pickles, which find no class within a function."""
    return _locator_class()()


def _visible(side, ticks) -> list:
    low, high = sorted(side.get_view_interval())
    return [tick for tick in ticks if low <= tick <= high]


def _ends(side, ticks) -> list:
    """What is left where there is no room: the first number, and the last or "NaN"."""
    shown = _visible(side, ticks)
    return shown[:1] + shown[-1:]


def _fit(side, ticks) -> bool:
    """Whether the labels of neighbours keep a digit's distance."""
    shown = _visible(side, ticks)
    low, high = sorted(side.get_view_interval())
    labels = side.get_major_formatter().format_ticks(shown)
    width = side.axes.get_window_extent().width / side.axes.figure.dpi
    places = [width * (tick - low) / (high - low) for tick in shown]
    needed = [DIGIT * (len(label) + 1) for label in labels]
    return all(
        places[k + 1] - places[k] >= (needed[k] + needed[k + 1]) / 2 for k in range(len(shown) - 1)
    )
