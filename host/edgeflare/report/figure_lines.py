"""The lines of a figure: what each is told from the others by, and the legend of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = 10
"""Colours of matplotlib's cycle, by default."""

_DASHES: Final = ("-", "--", ":", "-.")


def line_style(number: int) -> dict[str, Any]:
    """Return the style of a line by its number, from 0: the same in every panel of a figure.

    Up to 40 lines differ: where the colours end they begin again, with other dashes.
    """
    dashes = _DASHES[number // _COLOURS % len(_DASHES)]
    return {"color": f"C{number % _COLOURS}", "linestyle": dashes}


def add_legend(panel: Axes, names: Sequence[str], loc: str) -> None:
    """Add the legend of a figure's lines, with names that may begin with an underscore.

    As labels, matplotlib leaves those out.

    Args:
        panel: the panel that it lies in, which need not have all of the lines.
        names: of all lines of the figure, by their numbers.
        loc: where it lies, as matplotlib calls it.

    """
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    lines = [Line2D([], [], **line_style(number)) for number in range(len(names))]
    legend = panel.legend(lines, [str(n) for n in range(len(names))], loc=loc, frameon=False)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
