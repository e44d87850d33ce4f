"""A layer table as a page, and as rows for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Final

from edgeflare.diagnose.layers.layer_figures import (
    LayerError,
    LayerFigures,
    RangeUse,
    Sensitivity,
    listed,
)
from edgeflare.diagnose.layers.layers_document import (
    LayersDocument,
    cuts_off,
    differs_on_device,
    own_share,
)
from edgeflare.pages.csv_rows import csv_text
from edgeflare.pages.facts import count_of, significant
from edgeflare.pages.page import Block, Illustration, Page, Section, Sentences, Table

ROWS: Final = 12
"""Layers that are listed where there is little room."""

_SENSITIVITY: Final = (
    "Sensitivity: by how much the margin of the original's decision changes, on average, where this"
    " layer alone is computed as the compressed model does, with an interval of 95 %. Changed:"
    " inputs whose decision changes then. Entire: with the errors of the layers before; single: the"
    " operator by itself, the original's and the twin's given the same. Own: single over entire"
    " RMSE. Beyond: the original's values outside of the range, on the low and on the high side."
    " Used: the part of the range that they take up."
)


def layers_page(document: LayersDocument) -> Page:
    """Return what a layer table says."""
    wrong = document.wrong_on_device()
    stopped = document.inputs < document.inputs_requested
    warnings = [
        f"This is not all: it was stopped after {document.inputs} of {document.inputs_requested}"
        " inputs"
    ]
    return Page(
        kind="EdgeFlare layers",
        name=document.pair,
        on="" if document.device is None else document.device.name,
        mark="fail" if wrong or document.faulty() or document.not_finite() else None,
        lead=lead(document),
        warnings=[*(warnings if stopped else ()), *document.notes],
        sections=[
            Section(
                id="chart",
                title="Along the network",
                blocks=[Illustration(lambda: _charts(document))],
                brief=False,
            ),
            Section(
                id="compression",
                title="Original against twin",
                words=_SENSITIVITY,
                blocks=[_compression_table(document)],
            ),
            Section(
                id="kernels",
                title="Twin against device",
                words="Single: both compute the operator by itself, given the same. Entire: with"
                " the differences of the layers before. Units: steps of a quantized output.",
                blocks=[_kernel_table(document)],
            ),
            Section(id="ran", title="What ran where", blocks=[_ran(document)]),
        ],
        source="layers.json",
        version=document.edgeflare,
    )


def lead(document: LayersDocument) -> str:
    """Return the result in a sentence, without its full stop."""
    said = [
        *_said_of_device(document),
        *_said_of_finiteness(document),
        *_said_of_constants(document),
        *_said_of_input(document),
        *said_of_compression(document),
    ]
    return "; ".join(said) or "No layer could be seen"


def _said_of_device(document: LayersDocument) -> Iterator[str]:
    if document.device is None:
        return
    name = document.device.name
    seen = [layer for layer in document.layers if layer.device_single is not None]
    wrong = document.wrong_on_device()
    count, whole = count_of(document.inputs, "input"), document.outputs_differ
    though = f", though the model's output differs on {whole} of {count}" if whole else ""
    if not seen:
        yield f"no layer could be compared on {name}{though}"
        return
    if not wrong:
        joined = " and ".join(map(str, document.together))
        yield (
            f"{name} computes {count_of(len(seen), 'layer')} as the twin does, within one step"
            f"{though}{joined and f': {joined} are wrong together'}"
        )
        return
    named = listed(wrong_in_words(document))
    yield (
        f"{name} computes {len(wrong)} of {count_of(len(seen), 'layer')} otherwise than the twin:"
        f" {named}, by themselves; the model's output differs on {whole or 0} of {count}"
    )


def wrong_in_words(document: LayersDocument) -> list[str]:
    """Return the layers that the device computes otherwise, each with by how much."""
    return [f"{layer.layer} {_by(layer.device_single)}" for layer in document.wrong_on_device()]


def _by(found: LayerError | None) -> str:
    if found is None or found.not_finite:
        return "(not finite)"
    far = (
        significant(found.max_error)
        if found.max_error_steps is None
        else f"{significant(found.max_error_steps)} steps"
    )
    return f"(up to {far})"


def _said_of_finiteness(document: LayersDocument) -> Iterator[str]:
    if found := document.not_finite():
        yield f"{found[0].layer} is the first that is not finite where the original is"


def _said_of_constants(document: LayersDocument) -> Iterator[str]:
    faulty, others = document.faulty(), document.other_constants()
    if len(others) > len(faulty):
        yield (
            f"the constants of {count_of(len(others), 'layer')} are others than the original's, as"
            " of a model that was pruned or trained anew"
        )
    if not faulty:
        return
    named = listed(f"{layer.layer} ({constants_in_words(layer)})" for layer in faulty)
    yield f"constants are off by more than rounding explains in {named}"


def constants_in_words(layer: LayerFigures) -> str:
    """Return how far a layer's constants are off, in words."""
    known = layer.constants
    if known is None:
        return "–"
    if known.steps is None:
        return "not finite"
    wrapped = ", which its type cannot hold" if known.overflows else ""
    return f"{significant(known.steps)} steps{wrapped}"


def _said_of_input(document: LayersDocument) -> Iterator[str]:
    found = document.input_range
    if found is None or not cuts_off(found):
        return
    yield (
        f"the compressed model's input holds {significant(found.low)} to"
        f" {significant(found.high)}, and {found.below + found.above:.0%} of the values that the"
        " original is given lie beyond it"
    )


def said_of_compression(document: LayersDocument) -> Iterator[str]:
    """Yield what the most sensitive layer does, a sentence without its full stop."""
    compared = document.by_sensitivity()
    if compared and not document.measured:
        held = count_of(len(compared), "layer")
        yield f"{held} held against the original's, without a sensitivity"
    if not document.measured:
        return
    sensitive = document.most_sensitive()
    if not sensitive:
        yield f"no layer by itself moves the margin of a decision of {document.measured} inputs"
        return
    first, *others = sensitive
    its = first.sensitivity
    assert its is not None  # noqa: S101 - it was measured
    changed = f"{its.changed} of {count_of(its.inputs, 'decision')}"
    alike = ""
    if others:
        named = listed(str(other.layer) for other in others)
        alike = f"; so many inputs do not tell {named} from it"
    yield (
        f"{first.layer} is the most sensitive to compression: by itself it moves the margin"
        f" by {significant(its.margin)} on average, and changes"
        f" {changed}{_cut_off(first.range)}{alike}"
    )


def _cut_off(found: RangeUse | None) -> str:
    if found is None or not cuts_off(found):
        return ""
    return f"; {found.below + found.above:.1%} of the original's values lie beyond its range"


def _compression_table(document: LayersDocument) -> Table:
    rows = [
        (
            str(layer.layer.operator_index),
            layer.layer.name,
            "–" if (moved := layer.sensitivity) is None else _moved(moved),
            "–" if moved is None else str(moved.changed),
            _db(layer.single),
            _db(layer.entire),
            "–"
            if layer.entire is None or layer.entire.cosine is None
            else f"{layer.entire.cosine:.4f}",
            "–" if (share := own_share(layer)) is None else f"{share:.2f}",
            _beyond(layer.range),
            "–" if layer.range is None else f"{layer.range.used:.0%}",
        )
        for layer in document.by_sensitivity()
    ]
    measured = document.measured
    return Table(
        title="The most sensitive first" if measured else "The largest share of its own first",
        header=(
            *("layer", "operator", "sensitivity", "changed", "single dB", "entire dB"),
            *("cosine", "own", "beyond", "used"),
        ),
        rows=rows,
        numbers_from=2,
        most=ROWS,
        order="most sensitive" if measured else "first",
        missed_least=("cosine", "used", "changed", "own" if measured else "sensitivity"),
    )


def _moved(found: Sensitivity) -> str:
    """Return a sensitivity with its interval, which one input does not tell."""
    within = f" ± {significant(found.half_width, 2)}" if isfinite(found.half_width) else ""
    return f"{significant(found.margin)}{within}"


def _db(found: LayerError | None) -> str:
    if found is None:
        return "–"
    if found.not_finite:
        return f"not finite on {found.not_finite}"
    return "equal" if found.snr_db is None else f"{found.snr_db:.1f}"


def _beyond(found: RangeUse | None) -> str:
    if found is None:
        return "–"
    if not (found.below or found.above):
        return "0"
    return f"{_share(found.below)}, {_share(found.above)}"


def _share(share: float) -> str:
    """Return a share as people read it; of one that is not 0 never 0."""
    return "<0.1%" if 0.0 < share < 0.001 else f"{share:.1%}"


def _kernel_table(document: LayersDocument) -> Table:
    seen = [layer for layer in document.layers if layer.device_single is not None]
    off = [layer for layer in seen if layer.device_single is not None and layer.device_single.off]
    off.sort(key=lambda layer: not differs_on_device(layer))
    rows = [
        (
            str(layer.layer.operator_index),
            layer.layer.name,
            "yes" if differs_on_device(layer) else "no",
            _units(layer.device_single),
            _db(layer.device_single),
            _units(layer.device_entire),
            _db(layer.device_entire),
        )
        for layer in off
    ]
    return Table(
        title=f"Those that differ first; {len(seen) - len(off)} are equal",
        header=(
            *("layer", "operator", "differs", "single units", "single dB"),
            *("entire units", "entire dB"),
        ),
        rows=rows,
        numbers_from=3,
        most=ROWS,
        missed_least=("entire units", "single dB"),
    )


def _units(found: LayerError | None) -> str:
    return (
        "–"
        if found is None or found.max_error_steps is None
        else significant(found.max_error_steps)
    )


def _ran(document: LayersDocument) -> Block:
    on = ""
    if document.device is not None:
        where = document.device.provenance
        on = f", against {document.device.name} ({where.runtime} {where.runtime_version})"
    return Sentences(
        [
            f"{count_of(document.inputs, 'input')} of {document.source} on the twin"
            f" ({document.kernels} kernels){on}; sensitivity on {document.measured} of them."
        ]
    )


def _charts(document: LayersDocument) -> str:
    from edgeflare.diagnose.layers.layer_charts import layer_charts  # noqa: PLC0415 - needs an extra
    from edgeflare.pages.chart import charts_html  # noqa: PLC0415

    return charts_html(layer_charts(document))


_ERROR: Final = ("inputs", "not_finite", "cosine", "snr_db", "rmse", "max_error", "max_error_steps")

_ERRORS: Final = ("entire", "single", "device_entire", "device_single")

_PARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "constants": {
        "constants_steps": "steps",
        "constants_explained": "explained",
        "constants_overflow": "overflows",
    },
    "sensitivity": {
        "sensitivity": "margin",
        "standard_error": "standard_error",
        "sensitivity_inputs": "inputs",
        "changed": "changed",
    },
    "range": {
        "range_low": "low",
        "range_high": "high",
        "beyond_low": "below",
        "beyond_high": "above",
        "used": "used",
    },
    **{of: {f"{of}_{figure}": figure for figure in _ERROR} for of in _ERRORS},
}
"""The columns of `layers.csv` with the figures of a layer, by the part of it that has them."""

COLUMNS: Final = (
    *("operator_index", "name", "tensor", "original_index", "matched_by"),
    *(*_PARTS["constants"], *_PARTS["sensitivity"], "own", *_PARTS["range"]),
    *(column for of in _ERRORS for column in _PARTS[of]),
)
"""The columns of `layers.csv`."""


def layers_csv(document: LayersDocument) -> str:
    """Return a row for each layer, in execution order; what is not known is empty."""
    return csv_text(COLUMNS, map(_row, document.layers))


def _row(layer: LayerFigures) -> dict[str, object]:
    known = ((columns, getattr(layer, part)) for part, columns in _PARTS.items())
    return {
        "operator_index": layer.layer.operator_index,
        "name": layer.layer.name,
        "tensor": layer.layer.tensor,
        "original_index": layer.original_index,
        "matched_by": layer.matched_by,
        "own": own_share(layer),
        **{
            column: getattr(part, figure)
            for columns, part in known
            if part is not None
            for column, figure in columns.items()
        },
    }
