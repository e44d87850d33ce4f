"""Chart of the conditions of the field: what each severity of them costs, with its interval."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.ticker import MaxNLocator, PercentFormatter

from edgeflare.pages.chart import COLOURS, Chart, finish, new_panel, page_style
from edgeflare.pages.facts import count_of, shortened
from edgeflare.release.figures.condition_cells import FieldCell, FieldFigures
from edgeflare.release.measurement_tables import CELL_HEADER, cell_rows
from edgeflare.untrusted_text import for_html

_CONDITIONS: Final = 8
"""Conditions that are drawn, those first that lose most."""

_LONGEST: Final = 18
"""Letters of a condition's name beside its intervals."""

_APART: Final = 0.26
"""Part of a condition's row between two of its severities."""

_LOOKS: Final = (("muted", "o"), ("accent", "s"), ("ink", "^"), ("mixed", "D"), ("failure", "v"))
"""Colour and marker of each severity, from 1."""


def field_chart(figures: FieldFigures, limit: float | None) -> Chart | None:
    """Draw what the conditions cost; None where the original works under none.

    Args:
        figures: what was measured.
        limit: loss that a gate allows; None where nothing is held to it.

    """
    if not figures.ranked:
        return None
    names = list(dict.fromkeys(cell.condition for cell in figures.ranked))
    drawn = names[:_CONDITIONS]
    with page_style():
        figure, panel = new_panel()
        for severity in sorted({cell.severity for cell in figures.ranked}):
            cells = [cell for cell in figures.ranked if cell.severity == severity]
            _draw(panel, severity, [cell for cell in cells if cell.condition in drawn], drawn)
        clean = figures.unchanged.net
        panel.axvline(
            clean, color=COLOURS["muted"], linestyle=":", linewidth=1.2, label="unchanged"
        )
        if limit is not None:
            panel.axvline(
                limit, color=COLOURS["kernel"], linestyle="--", linewidth=1.2, label="limit"
            )
        _label(panel, drawn)
        words, rows = _words(figures, len(drawn), len(names)), tuple(cell_rows(figures.ranked))
        return finish("Loss under conditions", figure, words, CELL_HEADER, rows)


def _draw(panel: Any, severity: int, cells: list[FieldCell], names: list[str]) -> None:
    colour, marker = _LOOKS[(severity - 1) % len(_LOOKS)]
    losses = [cell.loss for cell in cells]
    panel.errorbar(
        [loss.value for loss in losses],
        [names.index(cell.condition) + _APART * (severity - 2) for cell in cells],
        xerr=[
            [loss.value - loss.low for loss in losses],
            [loss.high - loss.value for loss in losses],
        ],
        label=f"severity {severity}",
        color=COLOURS[colour],
        marker=marker,
        linestyle="none",
        markersize=3.5,
        elinewidth=1.0,
    )


def _label(panel: Any, names: list[str]) -> None:
    said = [for_html(shortened(name, _LONGEST)) for name in names]
    panel.set_yticks(range(len(said)), said)
    panel.set_ylim(len(said) - 0.4, -0.6)
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"], labelsize=8)
    panel.spines["left"].set_visible(False)
    panel.set_xlabel("right decisions that are lost, net")
    panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    panel.xaxis.set_major_locator(MaxNLocator(6))
    panel.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),  # above the panel, where it hides nothing
        ncols=5,
        fontsize=7,
        labelcolor=COLOURS["ink"],
        handlelength=1.2,
        columnspacing=0.9,
        handletextpad=0.4,
        borderaxespad=0.2,
    )


def _words(figures: FieldFigures, drawn: int, conditions: int) -> str:
    worst = figures.ranked[0]
    which = "" if drawn == conditions else f" The {drawn} of {conditions} that lose most."
    return (
        f"Most under {for_html(worst.condition)} at severity {worst.severity}:"
        f" {worst.loss.in_words()} of {count_of(worst.changes.inputs, 'input')}, and"
        f" {figures.unchanged.net:.2%} without a condition. Bars are intervals of 95 %.{which}"
    )
