"""Conformance runs of made-up figures, and one whose findings are real models of a real fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, draft_to_json
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.execution.model_opener import HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm, run_on_all
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.conform.verdict.operator_verdict import judged
from edgeflare.devices.provenance import Provenance
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory

WRAPPING: Final[dict[str, Setting]] = {
    "shape": (17,),
    "first_broadcast": "single value",
    "second_broadcast": "none",
    "constant": "second",
    "activation": "RELU6",
    "first_scale": 0.11445245891809464,
    "first_zero_point": 255,
    "second_scale": 0.1265535056591034,
    "second_zero_point": 128,
    "output_scale": 0.0007508376147598028,
    "output_zero_point": 0,
}
"""An ADD of uint8 that the built-in kernels of ai-edge-litert 2.3 get wrong: they wrap."""

SOUND: Final[dict[str, Setting]] = {**WRAPPING, "output_scale": 0.125}
"""One that they get right."""

CONSTANTS: Final = 2022974250
"""The seed of the constants of both."""


HALF_TRIED: Final[dict[str, Any]] = {
    "file": "kws.tflite",
    "sha256": "0" * 64,
    "operators": 4,
    "operators_tried": 3,
    "arithmetic": 1000,
    "arithmetic_tried": 480,
    "distinct": 3,
    "tried": 2,
    "graphs": [],
    "untried": [
        {
            "operator": "Mfcc",
            "places": [0, 2],
            "why": "the operator is not known",
            "arithmetic": 520,
        }
    ],
}
"""What the document says of a model of which less than half was tried."""


BOARD: Final = Provenance(
    name="board",
    transport="ssh",
    machine="aarch64",
    soc="",
    cpu_features=("asimd",),
    os="Linux",
    cores=4,
    governor="",
    python="3.11.2",
    runtime="tflite-runtime",
    runtime_version="2.14.0",
    kernels="builtin",
    threads=1,
    link_delay_seconds=0.0,
    agent_version="0.1.0",
    protocol="1.0",
)


def plain(part: object) -> Any:
    """Return a document, or parts of one, as they are read from JSON."""
    return msgspec.json.decode(msgspec.json.encode(part))


def addition(settings: dict[str, Setting] = WRAPPING) -> DraftNode:
    """Return an ADD of uint8."""
    return DraftNode("ADD", "uint8", settings, CONSTANTS, (FRESH,))


def finding_entry(number: int = 1, **changed: Any) -> FoundFault:
    """Return a finding of a document, of an ADD that wraps unless something is changed."""
    return msgspec.convert(finding_fields(number, **changed), FoundFault)


def finding_fields(number: int = 1, **changed: Any) -> dict[str, Any]:
    """Return `finding_entry` as plain JSON values."""
    return {
        "number": number,
        "operator": "ADD",
        "type": "uint8",
        "verdict": "device",
        "symptom": "wrong-values",
        "condition": ["size ≥ 8", "sum_ratio_log2 ≥ 7"],
        "arrangement": [],
        "counted": True,
        "accepted": None,
        "issue": None,
        "failing": 50,
        "places": [],
        "graphs": [],
        "worst": 255.0,
        "unit": "steps",
        "wrong": ["device", "builtin"],
        "detail": "14 of 68 values are wrong, by up to 255 steps; xnnpack and reference are right",
        "smallest": {
            "operators": _plain(addition()),
            "elements": 1,
            "rows": 4,
            "device_runs": 31,
            "repeats": True,
            "worst": 255.0,
            "detail": "14 of 68 values are wrong",
            "file": f"findings/{number:06d}.tflite",
        },
        **changed,
    }


def constructed_conformance(
    findings: Sequence[FoundFault] | None = None, **changed: Any
) -> ConformDocument:
    """Return the document of a run of three operators and types on the device "board".

    Args:
        findings: in the place of one that counts.
        changed: keys of the document, and their values.

    """
    return msgspec.convert(conformance_fields(findings, **changed), ConformDocument)


def conformance_fields(
    findings: Sequence[FoundFault] | None = None, **changed: Any
) -> dict[str, Any]:
    """Return `constructed_conformance` as plain JSON values."""
    found = [finding_fields()] if findings is None else plain(findings)
    figure = {"covered": 2, "total": 2, "refused": 1}
    return {
        "schema": "edgeflare.conform/v1",
        "edgeflare": "0.1.0",
        "plan": {
            "cells": [["ADD", "uint8"], ["EXP", "int8"], ["SIGN", "float32"]],
            "drawing": "uniform",
            "graphs": "none",
            "models": 96,
            "time_limit_seconds": None,
            "rng_seed": 0,
            "model": None,
        },
        "device": BOARD.to_json(),
        "host": {
            "runtime": "ai-edge-litert",
            "runtime_version": "2.3.0",
            "kernels": ["xnnpack", "builtin", "reference"],
        },
        "model": None,
        "stopped_by": "models",
        "seconds": 12.5,
        "models": 96,
        "graphs": None,
        "coverage": {
            "cells": figure,
            "buckets": {"covered": 90, "total": 120, "refused": 4},
            "uncovered": {"cells": [], "buckets": []},
        },
        "cells": [
            _cell("ADD", "uint8", {"device": 50, "right": 14}),
            _cell("EXP", "int8", {"right": 16}),
            _cell("SIGN", "float32", {"refused": 16}),
        ],
        "findings": found,
        "refused": [
            {
                "operator": "SIGN",
                "type": "float32",
                "models": 16,
                "always": True,
                "message": "Didn't find op for builtin opcode 'SIGN' version '1'",
            }
        ],
        "warnings": [],
        **changed,
    }


def _plain(node: DraftNode) -> list[dict[str, Any]]:
    """Return a model of one operator as documents have it."""
    return list(json.loads(json.dumps(draft_to_json(Draft((node,))))))


def _cell(operator: str, type_: str, verdicts: dict[str, int]) -> dict[str, Any]:
    figures = {"verdicts": verdicts, "rounding": None, "rounding_unit": None}
    return {"operator": operator, "type": type_, **figures}


def conformed_run(
    folder: Path, document: ConformDocument | dict[str, Any] | None = None
) -> RunDirectory:
    """Write a document into a run directory, which has no files of findings."""
    directory = RunDirectory(folder)
    content = json.dumps(msgspec.to_builtins(document or constructed_conformance()), indent=1)
    write_atomically(folder / CONFORM_DOCUMENT, content.encode())
    return directory


def run_with_files(folder: Path) -> None:
    """Write a run on `emulated-builtin` with the files of its two findings.

    The first is an ADD that wraps; the second one is said to crash, and does not.
    """
    models = [posed(Draft((addition(one),)), {}).whole for one in (WRAPPING, SOUND)]
    answers = _answered(models)
    directory = RunDirectory(folder)
    for number, (model, answer) in enumerate(zip(models, answers, strict=True), 1):
        exact = exact_rows(known_operators()["ADD"], model.graph, model.operands, model.rows)
        store_finding(directory, number, model, answer, exact)
    said = judged(
        known_operators()["ADD"], "uint8", models[0].graph, models[0].operands, answers[0]
    )
    assert (said.verdict, said.symptom, said.counted) == ("device", "wrong-values", True), said
    sound = finding_fields(2, verdict="crash", symptom="crash", worst=0.0, unit=None, condition=[])
    sound["smallest"]["operators"] = _plain(addition(SOUND))
    found = [finding_entry(wrong=list(said.wrong)), msgspec.convert(sound, FoundFault)]
    device = replace(
        BOARD,
        name="emulated-builtin", runtime="ai-edge-litert", runtime_version="2.3.0",
        machine="x86_64",
    )  # fmt: skip
    document = constructed_conformance(found, device=device.to_json())
    conformed_run(folder, document)


def _answered(models: Sequence[PosedModel]) -> list[dict[str, ModelAnswer]]:
    """Return the answers of the host's kernel sets, the built-in ones as those of a device too."""
    with ExitStack() as stack:
        arms = [PackingArm(HostOpener(kernels)) for kernels in ("xnnpack", "builtin", "reference")]
        for arm in arms:
            stack.callback(arm.close)
        by_arm = run_on_all(arms, models)
    names = {"device": "builtin", **{name: name for name in by_arm}}
    return [{name: by_arm[arm][at] for name, arm in names.items()} for at in range(len(models))]
