"""Explanations as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.diagnose.compression_error import LayerCompressionError
from edgeflare.diagnose.evidence import Vote
from edgeflare.diagnose.explain_findings import Explanation
from edgeflare.diagnose.layer_figures import LayerFigures
from edgeflare.diagnose.tensor_difference import Difference


def print_explanations(
    console: Console,
    explanations: Sequence[Explanation],
    classes: Sequence[str],
    where: str,
    picture: Callable[[Explanation], RenderableType | None] = lambda _: None,
) -> None:
    """Print the verdicts, and for a single finding all its evidence.

    Args:
        console: where to.
        explanations: what to print.
        classes: names of the classes.
        where: the file that has everything.
        picture: returns what is shown of a single finding's layers, if anything.

    """
    parts: list[RenderableType] = [_verdicts(explanations)]
    if len(explanations) == 1:
        (only,) = explanations
        parts += [_votes(only, classes), _layers(only)]
        notes = [only.parting.note, only.loss.note]
        parts += [Text(f"note: {note}", style="dim") for note in notes if note]
        drawn = picture(only)
        parts += [] if drawn is None else [drawn]
    parts.append(Text(f"Everything is in {where}.", style="dim"))
    console.print(Group(*parts))


def _verdicts(explanations: Sequence[Explanation]) -> Table:
    table = _table("Verdicts", ("seed", "cause", "verdict", "where it begins", "why"))
    for one in explanations:
        table.add_row(
            str(one.finding["seed_id"]),
            one.finding["cause"] or one.finding["kind"],
            Text(str(one.verdict)),
            Text(_begins(one)),
            Text(one.verdict.why),
        )
    return table


def _begins(one: Explanation) -> str:
    """Return the layer that a verdict points at."""
    if one.verdict.name == "compression":
        if one.loss.most is not None:
            return str(one.loss.most)
        return "no single layer" if one.loss.layers else "not seen"
    if one.parting.onset is None:
        return "not seen" if one.parting.method == "none" else "–"
    return f"{one.parting.onset}{'' if one.parting.first else ' or earlier'}"


def _votes(one: Explanation, classes: Sequence[str]) -> Table:
    table = _table("Who answers what", ("how", "answers", "times", "output"))
    evidence = one.evidence
    votes = [evidence.original, *evidence.host, evidence.device, *evidence.others]
    for vote in votes:
        if vote is not None:
            table.add_row(
                Text(str(vote.way)),
                Text(_label(vote, classes)),
                str(len(vote.labels)),
                f"{vote.outputs[0]:08x}" if vote.steady else "varies",
            )
    return table


def _label(vote: Vote, classes: Sequence[str]) -> str:
    said = [
        vote.failure or "nothing"
        if label is None
        else classes[label]
        if label < len(classes)
        else str(label)
        for label in dict.fromkeys(vote.labels)
    ]
    return ", then ".join(said) + (" (a tie)" if vote.tied else "")


def _layers(one: Explanation) -> Table:
    columns = ["layer", "device – twin", "new here", "twin – original", "new here", "explained"]
    if one.loss.beyond:
        columns += ["beyond it by", "of the margin"]
    units = _in_units(one)
    measure = "quantization units" if units else "real values, new in twin – original in units"
    table = _table(f"Along the network, largest differences in {measure}", columns)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    totals = {layer.layer: layer for layer in one.parting.layers}
    losses = {layer.layer: layer for layer in one.loss.layers}
    for layer in sorted(totals.keys() | losses.keys(), key=lambda known: known.operator):
        total, loss = totals.get(layer), losses.get(layer)
        parted = layer in (one.parting.onset, one.loss.most)
        table.add_row(
            _named(layer),
            _apart(None if total is None else total.total, units=units),
            _apart(None if total is None else total.own, units=units),
            "" if loss is None or loss.total is None else f"{loss.total.snr_db:.0f} dB",
            "" if loss is None else f"{loss.residual:.1f}",
            "" if loss is None else f"{loss.explained:.1f}",
            *(("" if loss is None else _decided(loss), _share(loss)) if one.loss.beyond else ()),
            style="bold" if parted else None,
        )
    return table


def _decided(loss: LayerCompressionError) -> str:
    """Return the figures by which more happened in a layer than quantization explains."""
    said = []
    if loss.residual > loss.explained:
        said.append(f"new here {_above(loss.residual, loss.explained)}")
    if loss.constants is not None and loss.constants.beyond:
        said.append(f"constant {_above(loss.constants.steps, loss.constants.explained)}")
    return ", ".join([*said, *loss.options])


def _above(value: float, limit: float) -> str:
    """Return two figures with as many digits as tell them apart."""
    digits = next((n for n in range(2, 17) if f"{value:.{n}g}" != f"{limit:.{n}g}"), 17)
    return f"{value:.{digits}g} > {limit:.{digits}g}"


def _share(loss: LayerCompressionError | None) -> str:
    if loss is None or loss.margin_share is None:
        return ""
    return f"{loss.margin_share:.0%}"


def _named(layer: LayerFigures) -> Text:
    return Text(f"{layer.operator} {layer.name}")


def _in_units(one: Explanation) -> bool:
    """Whether differences of device and twin are counted in units; if not, they are real values."""
    totals = [layer.total for layer in one.parting.layers if layer.total is not None]
    return not totals or any(total.max_units is not None for total in totals)


def _apart(found: Difference | None, *, units: bool) -> str:
    """Return a difference; in a network that is counted in units, name what is not."""
    if found is None:
        return ""
    if not units or found.max_real == 0:
        return f"{found.max_real:.2g}"
    return f"{found.max_real:.2g} real" if found.max_units is None else f"{found.max_units:.0f}"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
