"""The tables of explanations that `edgeflare explain` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.diagnose.compression_error import LayerCompressionError
from edgeflare.diagnose.execution_modes import Vote
from edgeflare.diagnose.explain_findings import Explanation
from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.stage_votes import STAGE_VOTES
from edgeflare.diagnose.tensor_difference import Difference
from edgeflare.diagnose.verdict import STAGE_PLACES


def print_explanations(
    console: Console,
    explanations: Sequence[Explanation],
    classes: Sequence[str],
    where: str,
    picture: Callable[[Explanation], RenderableType | None] = lambda _: None,
) -> None:
    """Print the verdicts and how often each is; for a single finding all its evidence.

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
        notes = [only.kernel_onset.note, only.compression_error.note]
        parts += [Text(f"note: {note}", style="dim") for note in notes if note]
        drawn = picture(only)
        parts += [] if drawn is None else [drawn]
    else:
        parts.append(Text(_counted(explanations)))
    parts.append(Text(f"Everything is in {where}.", style="dim"))
    console.print(Group(*parts))


def _verdicts(explanations: Sequence[Explanation]) -> Table:
    table = _table("Verdicts", ("seed", "cause", "verdict", "where it begins", "why"))
    for one in explanations:
        table.add_row(
            str(one.finding.seed_id),
            one.finding.cause or one.finding.kind,
            Text(str(one.verdict)),
            Text(_begins(one)),
            Text(one.verdict.why),
        )
    return table


def _counted(explanations: Sequence[Explanation]) -> str:
    """Return how many findings have each verdict, the most frequent first."""
    counts = Counter(one.verdict.name for one in explanations).most_common()
    said = ", ".join(f"{count} {name}" for name, count in counts)
    return f"{len(explanations)} findings: {said}."


def _begins(one: Explanation) -> str:
    """Return where a verdict says that the difference begins: in a layer, or at a stage."""
    if one.verdict.name in STAGE_PLACES:
        return STAGE_PLACES[one.verdict.name]
    if one.verdict.name == "compression":
        if one.compression_error.most is not None:
            return str(one.compression_error.most)
        return "no single layer" if one.compression_error.layers else "not seen"
    if one.kernel_onset.onset is None:
        return "not seen" if one.kernel_onset.method == "none" else "–"
    return f"{one.kernel_onset.onset}{'' if one.kernel_onset.first else ' or earlier'}"


def _votes(one: Explanation, classes: Sequence[str]) -> Table:
    table = _table("Who answers what", ("how", "answers", "times", "output"))
    evidence = one.evidence
    votes = [evidence.original, *evidence.host, evidence.device, *evidence.others]
    named = [(str(vote.mode), vote) for vote in votes if vote is not None]
    if evidence.stages is not None:
        stages = evidence.stages
        named += [
            (STAGE_VOTES["shipped"], stages.shipped),
            (STAGE_VOTES["pair_outputs"], stages.pair_outputs),
            (STAGE_VOTES["pair_inputs"], stages.pair_inputs),
        ]
    for name, vote in named:
        table.add_row(
            Text(name),
            Text(evidence.described(vote) or _label(vote, classes)),
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
    any_beyond = bool(one.compression_error.beyond)
    if any_beyond:
        columns += ["beyond it by", "of the margin"]
    units = _in_units(one)
    measure = "quantization units" if units else "real values, new in twin – original in units"
    table = _table(f"Along the network, largest differences in {measure}", columns)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    totals = {layer.layer: layer for layer in one.kernel_onset.layers}
    errors = {layer.layer: layer for layer in one.compression_error.layers}
    for layer in sorted(totals.keys() | errors.keys(), key=lambda known: known.operator):
        total, error = totals.get(layer), errors.get(layer)
        parted = layer in (one.kernel_onset.onset, one.compression_error.most)
        table.add_row(
            _named(layer),
            _apart(None if total is None else total.total, units=units),
            _apart(None if total is None else total.own, units=units),
            "" if error is None or error.total is None else f"{error.total.snr_db:.0f} dB",
            "" if error is None else f"{error.residual:.1f}",
            "" if error is None else f"{error.explained:.1f}",
            *(
                ("" if error is None else _decided(error), _share(error))
                if one.compression_error.beyond
                else ()
            ),
            style="bold" if parted else None,
        )
    return table


def _decided(error: LayerCompressionError) -> str:
    """Return the figures in which a layer's error is larger than quantization explains."""
    said = []
    if error.residual > error.explained:
        said.append(f"new here {_above(error.residual, error.explained)}")
    if error.constants is not None and error.constants.beyond:
        said.append(f"constant {_above(error.constants.steps, error.constants.explained)}")
    return ", ".join([*said, *error.options])


def _above(value: float, limit: float) -> str:
    """Return two figures with as many digits as they need to differ."""
    digits = next((n for n in range(2, 17) if f"{value:.{n}g}" != f"{limit:.{n}g}"), 17)
    return f"{value:.{digits}g} > {limit:.{digits}g}"


def _share(error: LayerCompressionError | None) -> str:
    if error is None or error.margin_share is None:
        return ""
    return f"{error.margin_share:.0%}"


def _named(layer: LayerName) -> Text:
    return Text(f"{layer.operator} {layer.name}")


def _in_units(one: Explanation) -> bool:
    """Whether differences of device and twin are counted in units; if not, they are real values."""
    totals = [layer.total for layer in one.kernel_onset.layers if layer.total is not None]
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
