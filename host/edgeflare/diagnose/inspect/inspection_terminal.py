"""An inspection on a terminal: the verdict, what foretells what, and the top channels."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.diagnose.inspect.inspection_figures import SHARE
from edgeflare.diagnose.inspect.inspection_result import InspectionResult

SHOWN = 5
"""Channels by share; the document has more."""

_ENDED = {
    "precise": "precise enough",
    "full": "as many as are kept",
    "inputs": "all there were",
}


def print_inspection(console: Console, result: InspectionResult, where: str) -> None:
    """Print the verdict, the best unit for each hypothesis, and the channels with most error.

    Args:
        console: where to.
        result: what to print.
        where: the file that has everything.

    """
    parts: list[RenderableType] = [
        Text(result.verdict.sentence, style="bold"),
        Text(f"{result.inputs} inputs, {_ENDED[result.ended]}; figures are of those held out."),
    ]
    parts += [_scores(result, behaviour) for behaviour in result.behaviours]
    if SHARE in result.top_units:
        parts.append(_shares(result))
    if result.constant:
        parts.append(Text(f"not tried, as constant: {', '.join(result.constant)}", style="dim"))
    parts.append(Text(f"Everything is in {where}.", style="dim"))
    console.print(Group(*parts))


def _scores(result: InspectionResult, behaviour: str) -> Table:
    """Return a row for each hypothesis and a column for each measure."""
    found = [one for one in result.best if one.behaviour == behaviour]
    measures = list(dict.fromkeys(one.measure for one in found))
    table = _table(
        f"What the {behaviour} of units foretells: score and operator:channel",
        ("hypothesis", *measures),
    )
    for hypothesis in result.hypotheses:
        cells = []
        for one in found:
            if one.hypothesis == hypothesis:
                name = (
                    "all units"
                    if one.unit is None
                    else _unit(result, one.unit.layer, one.unit.channel)
                )
                cells.append(
                    Text(
                        f"{one.score:.2f} {name}" if one.beyond else "nothing",
                        style="" if one.beyond else "dim",
                    )
                )
        table.add_row(Text(hypothesis), *cells)
    return table


def _shares(result: InspectionResult) -> Table:
    table = _table("Shares of the margin's error", ("channel", "of", "share", "95 % interval"))
    for one in result.top_units[SHARE][:SHOWN]:
        table.add_row(
            str(one.unit.channel),
            Text(str(result.layers[one.unit.layer])),
            f"{one.score:.0%}",
            f"{one.low:.0%} to {one.high:.0%}",
        )
    return table


def _unit(result: InspectionResult, layer: int, channel: int) -> str:
    """Return a unit as a cell has room for it: the operator's position and the channel."""
    return f"{result.layers[layer].operator}:{channel}"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
