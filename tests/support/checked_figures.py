"""Figures of checks that are made by hand, of a device that decides as the original unless told."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from conformed_runs import BOARD
from edgeflare.core.query import Arm
from edgeflare.release.check_document import CheckDocument, CheckRequest
from edgeflare.release.check_verdict import judge
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.condition_cells import FieldCell, FieldFigures
from edgeflare.release.figures.data import DataFigures
from edgeflare.release.figures.decisions import DecisionChanges, DecisionFigures
from edgeflare.release.figures.device_figures import (
    DeviceFigures,
    InvocationVariant,
    KernelFigures,
    OperatorFault,
    SeenOperators,
)
from edgeflare.release.figures.file import FaultKind, FileFault, FileFigures, SeenLayers
from edgeflare.release.gates import judged_gates, read_limits
from edgeflare.release.sections import sections_of
from edgeflare.run.run_document import RunDevice

INPUTS = 300
DEVICE = "phone"


def changes(
    changed: int = 0, by_tie: int = 0, harmed: int = 0, helped: int = 0, inputs: int = INPUTS
) -> DecisionChanges:
    return DecisionChanges(
        inputs=inputs, changed=changed, by_tie=by_tie, harmed=harmed, helped=helped
    )


def data(**known: Any) -> DataFigures:
    own: dict[str, Any] = {
        "source": "seeds.npz",
        "inputs": INPUTS,
        "available": INPUTS,
        "labelled": INPUTS,
        "reference": Arm.ORIGINAL,
        "right": 270,
        "guessing_accuracy": 0.1,
    }
    return DataFigures(**{**own, **known})


def decisions(**known: Any) -> DecisionFigures:
    own: dict[str, Any] = {
        "device": DEVICE,
        "inputs": INPUTS,
        "failed": {},
        "begins": "",
        "labelled": INPUTS,
        "right": {Arm.ORIGINAL: 270, Arm.TWIN: 270, Arm.DEVICE: 270},
        "changes": changes(),
        "by_file": changes(),
        "measure": "",
        "distance": {},
        "pooled_measure": "",
        "pooled": {},
        "losses": (),
        "systematic": None,
        "changed_inputs": (),
    }
    return DecisionFigures(**{**own, **known})


def kernels(**known: Any) -> KernelFigures:
    own: dict[str, Any] = {
        "device": RunDevice(name=DEVICE, provenance=BOARD),
        "changes": changes(),
        "repeated": 32,
        "unsteady": 0,
        "undecided": 0,
        "reading": None,
        "stages": None,
        "warnings": (),
    }
    return KernelFigures(**{**own, **known})


def figures(**known: Any) -> CheckFigures:
    """Return the figures of a check; `decisions` and `kernels` are those of its device."""
    device = DeviceFigures(
        decisions=known.pop("decisions", decisions()),
        kernels=known.pop("kernels", kernels()),
        outputs=(),
    )
    own: dict[str, Any] = {
        "data": data(),
        "devices": (device,),
        "file": file_figures(),
        "layers": layer_figures(),
    }
    return CheckFigures(**{**own, **known})


def document(found: CheckFigures) -> CheckDocument:
    """Return the document of a check with some figures, by the usual limits."""
    devices = tuple(one.decisions.device for one in found.devices)
    limits = read_limits(())
    gates = judged_gates(found, limits)
    verdict = judge(found, gates, devices, strict=False)
    return CheckDocument(
        verdict=verdict.name,
        sentence=verdict.sentence,
        next_step=verdict.next,
        cause=verdict.cause,
        devices_match_host=True,
        gates=gates,
        sections=sections_of(found, gates, verdict.cause, _named),
        figures=found,
        edgeflare="0",
        pair="my_pair",
        interface=None,
        plan=CheckRequest(
            about="pair",
            fingerprint="",
            devices=devices,
            limit=None,
            gates=limits,
            strict=False,
            time_limit_seconds=300.0,
            keep_inputs=True,
            near=True,
            mend=False,
        ),
        stopped_by=None,
        seconds=1.0,
        notes=(),
    )


def _named(command: str) -> str:
    return f"edgeflare {command} models/my_pair --device pixel-of-the-bench"


def file_figures(*faults: FileFault) -> FileFigures:
    return FileFigures(original_bytes=4000, compressed_bytes=1000, faults=faults, notes=())


def layer_figures(*faults: FileFault, **known: Any) -> SeenLayers:
    own = SeenLayers(
        inputs=100,
        layers=9,
        matched=9,
        faults=faults,
        other_constants=0,
        sensitive="",
        on_device={},
        together={},
        notes=(),
    )
    return replace(own, **known)


def operators(*faults: OperatorFault) -> SeenOperators:
    return SeenOperators(
        device=DEVICE, run="conform", operators=9, tried=9, models=25, faults=faults
    )


def operator_fault(*places: int, issue: str = "") -> OperatorFault:
    return OperatorFault(
        number=1,
        operator="MUL",
        type="float32",
        symptom="wrong-values",
        condition=("size > 4",),
        places=places,
        issue=issue,
    )


def variant(kind: Literal["threads", "batch"] = "threads", **known: Any) -> InvocationVariant:
    own: dict[str, Any] = {
        "kind": kind,
        "size": 4,
        "inputs": 16,
        "failed": 0,
        "others": 0,
        "changed": 0,
        "snr_db": None,
    }
    return InvocationVariant(**{**own, **known})


def fault(kind: FaultKind, words: str = "something is wrong") -> FileFault:
    return FileFault(kind=kind, place="ADD (operator 1)", sentence=words, next_step="mend it")


def cell(condition: str, severity: int, lost: int, p: float = 1.0) -> FieldCell:
    """Return a cell of 150 inputs, of which the original gets 120 right."""
    known = changes(lost, harmed=lost, inputs=150)
    return FieldCell(
        condition=condition, severity=severity, right=120, changes=known, p_corrected=p
    )


def field_figures(*worst: FieldCell, clean: int = 0) -> FieldFigures:
    return FieldFigures(inputs=150, cells=57, unchanged=cell("unchanged", 0, clean), ranked=worst)


HARM = decisions(
    right={Arm.ORIGINAL: 270, Arm.TWIN: 240, Arm.DEVICE: 240},
    changes=changes(40, harmed=32, helped=2),
    by_file=changes(40, harmed=32, helped=2),
)
"""Of a file that does harm: 30 of 300 inputs lose what was right."""
