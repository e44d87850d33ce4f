"""An inspection on a terminal: the verdict, what foretells what, and the top channels."""

from __future__ import annotations

from rich.console import Console

from edgeflare.diagnose.inspect.inspection_figures import SHARE
from edgeflare.diagnose.inspect.inspection_result import InspectionResult
from edgeflare.pages.page import Block, Section, Sentences, Table
from edgeflare.pages.terminal import print_section

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
    blocks: list[Block] = [
        Sentences(
            [f"{result.inputs} inputs, {_ENDED[result.ended]}; figures are of those held out."]
        ),
        *(_scores(result, behaviour) for behaviour in result.behaviours),
        _shares(result),
    ]
    if result.constant:
        blocks.append(Sentences([f"not tried, as constant: {', '.join(result.constant)}"]))
    blocks.append(Sentences([f"Everything is in {where}."]))
    sentence = result.verdict.sentence
    print_section(console, Section(id="inspection", title=sentence, blocks=blocks))


def _scores(result: InspectionResult, behaviour: str) -> Table:
    """Return a row for each hypothesis and a column for each measure."""
    found = [one for one in result.best if one.behaviour == behaviour]
    measures = list(dict.fromkeys(one.measure for one in found))
    cells: dict[str, dict[str, str]] = {name: {} for name in result.hypotheses}
    for one in found:
        unit = "all units"
        if one.unit is not None:
            unit = f"{result.layers[one.unit.layer].operator}:{one.unit.channel}"
        said = f"{one.score:.2f} {unit}" if one.beyond else "nothing"
        cells[one.hypothesis][one.measure] = said
    return Table(
        title=f"What the {behaviour} of units foretells: score and operator:channel",
        header=("hypothesis", *measures),
        rows=[
            (name, *(told.get(measure, "") for measure in measures)) for name, told in cells.items()
        ],
        missed_least=("regression", "mutual information"),
    )


def _shares(result: InspectionResult) -> Table:
    rows = [
        (
            str(one.unit.channel),
            str(result.layers[one.unit.layer]),
            f"{one.score:.0%}",
            f"{one.low:.0%} to {one.high:.0%}",
        )
        for one in result.top_units.get(SHARE, ())[:SHOWN]
    ]
    header = ("channel", "of", "share", "95 % interval")
    return Table.of_words(header, rows, title="Shares of the margin's error")
