"""`conform.json`, schema `edgeflare.conform/v1`: what a conformance run covered and found.

`record/conform.schema.json` describes it; docs/conform.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.criterion import CoverageFigure
from edgeflare.conform.execution.host_opener import HOST_KERNELS
from edgeflare.conform.record.conform_file import SCHEMA
from edgeflare.conform.record.conform_finding import ConformFinding, kept_error
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.core.interrupt import InterruptedBy

StoppedBy = InterruptedBy | Literal["models", "time", "nothing left"]
"""Why a run ended: all models that were asked for were drawn; its time was up; Ctrl-C or
SIGTERM; or there was nothing left to draw."""

_MOST_PAIRS: Final = 1000
"""Uncovered pairs that the document lists: there are tens of thousands."""


def conform_document(
    header: ConformHeader,
    conformance: Conformance,
    coverage: Coverage,
    findings: Sequence[ConformFinding],
    model: Mapping[str, Any] | None,
    stopped_by: StoppedBy,
    seconds: float,
    devices: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the result of a run as plain JSON values.

    Args:
        header: what run it is.
        conformance: what came of its models.
        coverage: what they covered.
        findings: what was found.
        model: what is known of the model that the user named; None for none.
        stopped_by: why it ended.
        seconds: that it took.
        devices: the names of those that worked on it, where it was gone on with.

    """
    return {
        "schema": SCHEMA,
        "edgeflare": header.version,
        "request": header.request.to_json(),
        "device": dict(header.device),
        "host": {"runtime": header.host_runtime, "kernels": list(HOST_KERNELS)},
        "model": None if model is None else dict(model),
        "stopped_by": stopped_by,
        "seconds": round(seconds, 3),
        "models": conformance.models,
        "coverage": _coverage(coverage),
        "cells": _cells(conformance),
        "findings": [one.to_json() for one in findings],
        "refused": list(_refused(conformance)),
        "warnings": _several(devices),
    }


def _several(devices: Sequence[str]) -> list[str]:
    """Return a warning where devices of several names answered."""
    said = f"several devices that are alike worked on this run: {', '.join(devices)}"
    return [said] if devices[1:] else []


def _coverage(coverage: Coverage) -> dict[str, Any]:
    figures = coverage.figures()
    uncovered: dict[str, Any] = coverage.document()
    return {
        **{name: _figure(figures[name]) for name in ("cells", "buckets", "pairs")},
        "uncovered": {
            "cells": uncovered["uncovered_cells"],
            "buckets": uncovered["uncovered_buckets"],
            "pairs": uncovered["uncovered_pairs"][:_MOST_PAIRS],
        },
    }


def _figure(figure: CoverageFigure) -> dict[str, int]:
    return {
        "covered": figure.covered,
        "of": figure.known - figure.refused,
        "refused": figure.refused,
    }


def _cells(conformance: Conformance) -> list[dict[str, Any]]:
    return [
        {
            "operator": operator,
            "type": type_,
            "verdicts": dict(sorted(figures.verdicts.items())),
            "rounding": kept_error(figures.rounding[0]) if figures.verdicts["rounding"] else None,
            "rounding_unit": figures.rounding[1],
        }
        for (operator, type_), figures in sorted(conformance.cells.items())
    ]


def _refused(conformance: Conformance) -> Sequence[dict[str, Any]]:
    return [
        {
            "operator": operator,
            "type": type_,
            "models": models,
            "always": set(figures.verdicts) == {"refused"},
            "message": message,
        }
        for (operator, type_), figures in sorted(conformance.cells.items())
        for message, models in sorted(figures.refused.items())
    ]
