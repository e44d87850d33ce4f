"""All that a check has measured, as tables of its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from edgeflare.core.query import Arm
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.facts import in_words, number, significant
from edgeflare.pages.page import Block, Illustration, Section, Table
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.figures.condition_cells import FieldCell
from edgeflare.release.figures.device_figures import OutputFigures


def measured_sections(
    document: CheckDocument, drawn: Mapping[str, Callable[[], str]] = MappingProxyType({})
) -> list[Section]:
    """Return the sections of the page with all that a check has measured.

    Args:
        document: document of the check.
        drawn: draws charts that stand before the tables, as HTML, by the id of the section.

    """
    return [
        Section(
            id=section.id,
            title=section.title,
            words=section.words,
            blocks=[
                *([Illustration(drawn[section.id])] if section.id in drawn else []),
                *(table(document) for table in section.tables),
            ],
            brief=False,
        )
        for section in _SECTIONS
    ]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A section of tables.

    Attributes:
        id: the place of the section in the address of the page.
        title: the heading.
        words: what the tables show.
        tables: each returns a table of a document.

    """

    id: str
    title: str
    words: str
    tables: Sequence[Callable[[CheckDocument], Block]]


def _conditions(document: CheckDocument) -> Table:
    """Return the conditions at a severity that lose most, and the inputs as they are."""
    known = document.figures.field
    ranked = () if known is None else known.ranked
    return Table(
        title=f"The {min(_CELLS, len(ranked))} of {len(ranked)} that lose most",
        header=CELL_HEADER,
        rows=[*cell_rows(ranked[:_CELLS]), *cell_rows(() if known is None else (known.unchanged,))],
        note="Right: by the original. Net: harmed less helped. p: of a sign test, corrected for all"
        " that were tried.",
        numbers_from=2,
    )


_CELLS: Final = 10
"""Conditions at a severity that are listed."""

CELL_HEADER: Final[tuple[str, ...]] = (
    *("condition", "severity", "inputs", "right", "harmed"),
    *("helped", "lost net", "interval", "p"),
)
"""Columns of a condition at a severity."""


def _conditions_again(document: CheckDocument) -> Table:
    """Return those that lose most of all, on further inputs."""
    known = document.figures.field
    again = None if known is None else known.further
    rows = [] if again is None else [*cell_rows(again.ranked), *cell_rows((again.unchanged,))]
    title = "Tried again on other inputs"
    return Table(title=title, header=CELL_HEADER, rows=rows, numbers_from=2)


def cell_rows(cells: Sequence[FieldCell]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of conditions at a severity; the columns are those of `CELL_HEADER`."""
    for cell in cells:
        loss, its = cell.loss, cell.changes
        yield (
            cell.condition,
            f"{cell.severity}" if cell.severity else "–",
            f"{its.inputs:,}",
            f"{cell.right:,}",
            f"{its.harmed:,}",
            f"{its.helped:,}",
            f"{loss.value:.2%}",
            f"{loss.low:.2%} to {loss.high:.2%}",
            f"{cell.p_corrected:.2g}" if cell.severity else "–",
        )


def _searched(document: CheckDocument) -> Table:
    known = document.figures.near
    both = () if known is None else (known.model, known.reference)
    rows = [
        (
            name,
            f"{model.seeds:,}",
            f"{model.found:,}",
            number(model.nearness_db),
            f"{model.area:.3f}",
            f"{model.harmed:,}",
        )
        for name, model in zip(("this file", "good int8 of its original"), both, strict=False)
    ]
    measure = "" if known is None else known.measure
    return Table(
        title="",
        header=("searched", "inputs", "found from", f"median {measure} dB", "area", "harmed"),
        rows=rows,
    )


def _costs(document: CheckDocument) -> Table:
    rows = [
        (
            cost.device,
            which,
            *(
                significant(1e3 * seconds)
                for seconds in (time.median_seconds, time.high_seconds, time.first_seconds)
            ),
            "–" if cost.ratio is None else f"{cost.ratio:.2f}",
            "–" if cost.ratio is None else f"{cost.ratio_low:.2f} to {cost.ratio_high:.2f}",
            "–" if cost.worker_bytes is None else f"{cost.worker_bytes / 2**20:.0f}",
            "–" if cost.arena_bytes is None else f"{cost.arena_bytes / 2**10:.0f}",
        )
        for cost in document.figures.costs
        for which, time in (("original", cost.original), ("compressed", cost.compressed))
        if time is not None
    ]
    return Table(
        title="",
        header=(
            *("device", "model", "median ms", "90 % ms", "first ms", "ratio", "interval"),
            *("worker MiB", "arena KiB"),
        ),
        rows=rows,
        numbers_from=2,
    )


def _operators(document: CheckDocument) -> Table:
    rows = [
        (
            operator.device,
            f"{fault.operator} {fault.type}",
            in_words(fault.symptom),
            ", ".join(fault.condition) or "always",
            ", ".join(fault.layers) or "near to the model's own",
            f"{operator.run} {fault.number}",
        )
        for operator in document.figures.operators
        for fault in operator.faults
    ]
    return Table(
        title="",
        header=("device", "operator", "what is wrong", "when", "where", "finding"),
        rows=rows,
        numbers_from=6,
    )


def _mended(document: CheckDocument) -> Table:
    known = document.figures.mend
    sets = (
        []
        if known is None
        else [
            ("as they come, deviating", known.deviating),
            ("as they come, decided wrongly", known.wrong),
            ("near the boundary, deviating", known.near),
        ]
    )
    rows = [
        (
            name,
            *(
                f"{n:,}"
                for n in (mended.inputs, mended.before, mended.after, mended.mended, mended.broken)
            ),
        )
        for name, mended in sets
        if mended is not None
    ]
    header = ("inputs", "of", "before", "after", "mended", "broken")
    return Table(title="", header=header, rows=rows)


def _drawn(document: CheckDocument) -> Table:
    rows = [
        (
            figures.device.name,
            output.output,
            *(("–",) * 5 if output.error is None else _figures(output.error)),
            f"{output.not_finite}",
            "yes" if output.constant else "no",
            f"{output.share_at_limits:.1%}",
        )
        for figures in document.figures.drawn
        for output in figures.outputs
    ]
    return Table(
        title="",
        header=(
            *("device", "output", "inputs", "SQNR dB", "cosine", "RMSE", "largest error"),
            *("not finite", "constant", "at its ends"),
        ),
        rows=rows,
        numbers_from=2,
    )


def _decisions(document: CheckDocument) -> Table:
    rows = [
        (
            device.decisions.device,
            f"{device.decisions.inputs:,}",
            *(
                f"{device.decisions.accuracy(arm):.1%}" if arm in device.decisions.right else "–"
                for arm in Arm
            ),
            f"{device.decisions.changes.changed:,}",
            f"{device.decisions.changes.by_tie:,}",
            f"{device.decisions.changes.harmed:,}",
            f"{device.decisions.changes.helped:,}",
            f"{device.kernels.changes.strictly:,}",
        )
        for device in document.figures.devices
    ]
    return Table(
        title="",
        header=(
            *("device", "inputs", "original right", "twin right", "device right", "changed"),
            *("by ties", "harmed", "helped", "by kernels"),
        ),
        rows=rows,
    )


def _losses(document: CheckDocument) -> Table:
    rows = [
        (loss.name, device.decisions.device, str(loss.inputs), str(loss.left), str(loss.came))
        for device in document.figures.devices
        for loss in device.decisions.losses
    ]
    return Table(
        title="Classes that are lost significantly",
        header=("class", "device", "inputs", "left", "came"),
        rows=rows,
        numbers_from=2,
    )


def _numbers(document: CheckDocument) -> Table:
    rows = [
        row
        for device in document.figures.devices
        for output in device.outputs
        for row in output_rows(output, device.decisions.device)
    ]
    return Table(
        title="",
        header=("output", "of", "inputs", "SQNR dB", "cosine", "RMSE", "largest error"),
        rows=rows,
        numbers_from=2,
    )


def output_rows(output: OutputFigures, device: str) -> list[tuple[str, ...]]:
    """Return the rows of an output: how far the twin's is from the original's, and the device's."""
    sides = (("twin from original", output.compression), (f"{device} from twin", output.kernels))
    return [(output.output, what, *_figures(found)) for what, found in sides if found is not None]


def _figures(found: LayerError) -> tuple[str, ...]:
    if not found.inputs:  # none was finite on both sides
        return ("0", *("–",) * 4)
    return (
        str(found.inputs),
        "equal" if found.snr_db is None else f"{found.snr_db:.1f}",
        number(found.cosine, 5),
        significant(found.rmse, 4),
        significant(found.max_error, 4),
    )


def _scores(document: CheckDocument) -> Table:
    rows = [
        (
            device.decisions.device,
            its.score,
            str(its.inputs),
            significant(its.median, 4, "+"),
            f"{significant(its.low, 4, '+')} to {significant(its.high, 4, '+')}",
            number(its.effect, 2, "+"),
        )
        for device in document.figures.devices
        if (its := device.score) is not None
    ]
    return Table(
        title="How much higher the device scores what is decided",
        header=("device", "score", "inputs", "median", "interval", "effect size"),
        rows=rows,
        note="The median of the differences with its interval of 95 %, and over their standard"
        " deviation.",
        numbers_from=2,
    )


def _sensitive(document: CheckDocument) -> Table:
    layers = document.figures.layers
    rows = [
        (layer.layer, f"{layer.inputs}", f"{layer.changed}", significant(layer.margin))
        for layer in (() if layers is None else layers.worst)
    ]
    return Table(
        title="The most sensitive",
        header=("layer", "inputs", "decisions changed", "margin moved by"),
        rows=rows,
    )


def _explained(document: CheckDocument) -> Table:
    layers = document.figures.layers
    rows = [
        (explained_changes.description, f"{explained_changes.inputs}")
        for explained_changes in (() if layers is None else layers.explained)
    ]
    return Table(title="To blame for changed inputs", header=("what", "inputs"), rows=rows)


def _faults(document: CheckDocument) -> Block:
    rows = [
        (fault.place, in_words(fault.kind), fault.sentence, fault.next_step)
        for fault in document.figures.faults
    ]
    return Table.of_words(("place", "kind", "what is wrong", "what helps"), rows)


_SECTIONS: Final = (
    _Measured(
        "arms",
        "Decisions",
        "Harmed: inputs that the reference alone gets right. Helped: those that the"
        " device alone gets right.",
        (_decisions, _losses),
    ),
    _Measured(
        "numbers",
        "Numbers",
        "SQNR: of the twin's output from the original's, and of the device's from the twin's.",
        (_numbers, _scores),
    ),
    _Measured(
        "layers",
        "Layers",
        "Each layer by itself computed as the compressed model does, all others as the"
        " original does; and what is to blame for the changed inputs that were looked"
        " into. The layer table has all layers.",
        (_sensitive, _explained),
    ),
    _Measured(
        "field",
        "Conditions of the field",
        "What is lost under a condition where the original still works: the share of right"
        " decisions that the device alone gets wrong, less those that it alone gets right.",
        (_conditions, _conditions_again),
    ),
    _Measured(
        "near",
        "Near to the inputs",
        "From how many inputs a search found one that is decided otherwise, and how near it lies:"
        " more dB are nearer. Area: under the curve of these shares against nearness, from 0 to 1;"
        " less is better. Harmed: found ones that the original alone decides as is right.",
        (_searched,),
    ),
    _Measured(
        "cost",
        "Cost",
        "Time of one input as the agent measures it, in turns: of an inference, or of all that"
        " the frames or windows of the input take. First: of a model that was just opened. Ratio:"
        " compressed over original, with its interval of 95 %.",
        (_costs,),
    ),
    _Measured(
        "operators",
        "Operators by themselves",
        "What `edgeflare conform` finds wrong on the device, of the model's own"
        " operators and of others near to them, on values that are drawn; the run is in"
        " the folder of the check.",
        (_operators,),
    ),
    _Measured(
        "mend",
        "Mend",
        "What a repair at equal cost gives on inputs that it held out, on the host's"
        " kernels; the repair is in the folder of the check.",
        (_mended,),
    ),
    _Measured(
        "drawn",
        "Drawn inputs",
        "The device's outputs beside the host's. Constant: the same for all inputs. At"
        " its ends: values at an end of the range of the output.",
        (_drawn,),
    ),
    _Measured(
        "faults",
        "Faults of the file",
        "",
        (_faults,),
    ),
)
"""The sections in their order."""
