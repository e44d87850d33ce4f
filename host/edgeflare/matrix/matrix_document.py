"""The result of a matrix: `matrix.json`, schema `edgeflare.matrix/v1`, and `matrix.md`.

`matrix.schema.json` beside this file describes it; docs/matrix.md says what each figure means.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from edgeflare import __version__
from edgeflare.matrix.conform_matrix import ConformMatrix
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.matrix.matrix_folder import MATRIX_DOCUMENT, MATRIX_TABLE
from edgeflare.matrix.retry_matrix import RetryMatrix
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes

SCHEMA: Final = "edgeflare.matrix/v1"

_WRITER: Final = {"schema": SCHEMA, "edgeflare": __version__}


def write_matrix(document: dict[str, Any], markdown: str, out: Path) -> None:
    """Write `matrix.json` and `matrix.md` into the folder of the runs.

    Args:
        document: what one of the functions below returns.
        markdown: the tables.
        out: the folder.

    """
    write_atomically(out / MATRIX_DOCUMENT, json_bytes(document))
    write_atomically(out / MATRIX_TABLE, markdown.encode())


def matrix_document(matrix: Matrix) -> dict[str, Any]:
    """Return the result of searches or of a replay as plain JSON values."""
    apart = matrix.apart()
    return {
        **_WRITER,
        "command": matrix.command,
        "pair": matrix.pair,
        "find": matrix.goal.find.value,
        "compared": [arm.value for arm in matrix.goal.compared],
        "kernel_sets": [_kernel_set(one) for one in matrix.rows],
        "inputs": [
            {
                "run": trigger.run,
                "image": trigger.image,
                "seed_id": trigger.seed_id,
                "sha256": trigger.sha256,
                "deviating": list(said.deviating),
                "alone": said.alone,
            }
            for trigger, said in zip(matrix.triggers, matrix.agreement, strict=True)
        ],
        "apart": [
            {"kernel_sets": list(pair), "inputs": count} for pair, count in sorted(apart.items())
        ],
    }


def _kernel_set(one: KernelSetFigures) -> dict[str, Any]:
    if one.provenance is None:
        return {"kernels": one.kernels, "device": one.device, "refused": one.refused}
    keys = ("runtime", "runtime_version", "delegated_nodes", "total_nodes", "adapter")
    return {
        "kernels": one.kernels,
        "device": one.device,
        "refused": None,
        **{key: one.provenance.get(key) for key in (*keys, "arena_bytes")},
        "run": one.kernels,
        "seeds": one.seeds,
        "deviating_seeds": one.deviating_seeds,
        "findings": one.findings,
        "deviating": one.deviating,
        "alone": one.alone,
    }


def conform_matrix_document(matrix: ConformMatrix) -> dict[str, Any]:
    """Return the result of conformance runs as plain JSON values."""
    return {
        **_WRITER,
        "command": "conform",
        "kernel_sets": [asdict(row) for row in matrix.rows],
        "refused": dict(matrix.refused),
        "cells": [
            {
                "operator": operator,
                "type": type_,
                "kernel_sets": {kernels: asdict(one) for kernels, one in by.items()},
                "alone": matrix.alone.get((operator, type_)),
            }
            for (operator, type_), by in matrix.cells.items()
        ],
    }


def retry_matrix_document(matrix: RetryMatrix) -> dict[str, Any]:
    """Return what became of the findings of a conformance run as plain JSON values."""
    return {
        **_WRITER,
        "command": "replay",
        "findings": [
            {
                "number": finding.number,
                "operator": finding.operator,
                "type": finding.type,
                "kernel_sets": dict(zip(matrix.kernels, outcomes, strict=True)),
                "alone": alone,
            }
            for finding, outcomes, alone in zip(
                matrix.findings, matrix.outcomes, matrix.alone, strict=True
            )
        ],
    }
