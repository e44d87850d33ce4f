"""How much of the user's model a conformance run tries, and why not the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.model_reading import ModelReading
from edgeflare.conform.record.conform_document import (
    ModelCoverage,
    ModelGraph,
    UntriedOperator,
)
from edgeflare.conform.record.conform_header import ConformRequest
from edgeflare.conform.rounds.conformance import Conformance

_LEFT_OUT = "left out by --ops or --dtype"
_REFUSED = "the device refuses it"
_GRAPHS_ALONE = "--graphs runs the model as a whole"
_NOT_REACHED = "the run ended before it: give it more --models or a longer --time-limit"


def model_figures(
    name: str, content: bytes, reading: ModelReading, cells: Sequence[Cell]
) -> ModelCoverage:
    """Return what is known of the user's model before any of it is run.

    The figures of what is tried are those of a run that comes to an end.

    Args:
        name: name of the model's file.
        content: the file.
        reading: the model's operators.
        cells: the operators and types that are asked for.

    """
    possible = {read.place for read in reading.known if read.cell in cells}
    return ModelCoverage(
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        operators=len(reading.arithmetic),
        distinct=sum(operator.cell in cells for operator in reading.distinct),
        arithmetic=sum(reading.arithmetic.values()),
        graphs=tuple(
            ModelGraph(name=graph.name, first=graph.places.start, operators=len(graph.places))
            for graph in reading.graphs
            if graph.name
        ),
        **_tried(reading, possible, _known_reasons(reading, cells)),
    )


def with_tried(
    figures: ModelCoverage, reading: ModelReading, request: ConformRequest, seen: Conformance
) -> ModelCoverage:
    """Return what is known of the user's model after a run.

    Args:
        figures: as `model_figures` returned them.
        reading: the model's operators.
        request: what was asked for.
        seen: what the run has seen.

    """
    cells = request.cells
    # MEMO's loop begins with the other operators of the model, too.
    tried = reading.equal_to(seen.given(cells))
    reasons = _known_reasons(reading, cells)
    refused = reading.equal_to(seen.refused(cells))
    not_reached = _GRAPHS_ALONE if request.graphs == "only" else _NOT_REACHED
    for read in reading.known:
        reasons.setdefault(read.place, _REFUSED if read.place in refused else not_reached)
    return msgspec.structs.replace(figures, **_tried(reading, tried, reasons))


def _known_reasons(reading: ModelReading, cells: Sequence[Cell]) -> dict[int, str]:
    """Return why operators cannot be tried, by their places."""
    left_out = {read.place: _LEFT_OUT for read in reading.known if read.cell not in cells}
    return {**left_out, **{skipped.place: skipped.reason for skipped in reading.unknown}}


def _tried(
    reading: ModelReading, places: Collection[int], reasons: Mapping[int, str]
) -> dict[str, Any]:
    """Return the figures of what is tried, and of what is not."""
    return {
        "tried": reading.distinct_at(places),
        "operators_tried": len(places),
        "arithmetic_tried": sum(reading.arithmetic[place] for place in places),
        "untried": tuple(
            sorted(
                _untried(reading, places, reasons),
                key=lambda operator: (-operator.arithmetic, operator.places),
            )
        ),
    }


def _untried(
    reading: ModelReading, places: Collection[int], reasons: Mapping[int, str]
) -> Iterator[UntriedOperator]:
    names = {read.place: read.operator for read in reading.known}
    names |= {skipped.place: skipped.operator for skipped in reading.unknown}
    gathered: dict[tuple[str, str], list[int]] = {}
    for place in sorted(names.keys() - set(places)):
        gathered.setdefault((names[place], reasons[place]), []).append(place)
    for (operator, why), at in gathered.items():
        arithmetic = sum(reading.arithmetic[place] for place in at)
        yield UntriedOperator(operator=operator, places=tuple(at), why=why, arithmetic=arithmetic)
