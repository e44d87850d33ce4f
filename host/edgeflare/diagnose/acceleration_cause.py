"""What an accelerator's settings have to do with a difference: float16, and fallback to the CPU.

Each is shown by an experiment on the device itself that changes nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote

AccelerationCause = Literal["accelerator precision", "CPU fallback"]
"""What else than the accelerator as such causes the difference of device and twin."""


def acceleration_cause(evidence: Evidence) -> tuple[AccelerationCause, str] | None:
    """Return what of an accelerator's settings makes device and twin differ, and why.

    Returns:
        None for a device without an accelerator, and where it is none of the settings.

    """
    if not evidence.device.mode.accelerated:
        return None
    return _by_precision(evidence) or _by_fallback(evidence)


def _by_precision(evidence: Evidence) -> tuple[AccelerationCause, str] | None:
    """Blame float16 where the device gives the twin's answer in float32 throughout."""
    own = evidence.device.mode
    exact = _asked(evidence, replace(own, precision="fp32"))
    if own.precision != "fp16" or exact is None or not exact.agrees(evidence.twin):
        return None
    return (
        "accelerator precision",
        f"the device gives {_said(evidence, exact)} where its {_accelerator(own)} computes in"
        " float32 throughout",
    )


def _by_fallback(evidence: Evidence) -> tuple[AccelerationCause, str] | None:
    """Blame the fallback where the CPU's nodes alone account for the answer.

    So it is where the accelerator gives the twin's answer once nothing may fall back. A model that
    it takes in part cannot be run so; it can be run on the CPU of the same runtime as a whole, and
    if that gives the device's answer, the nodes on the accelerator add nothing to it. But if the
    host's XNNPACK gives it too, those kernels are not wrong, and the accelerator may do as they do.
    Where nothing was accelerated, the CPU has run all.
    """
    device, own = evidence.device, evidence.device.mode
    alone = _asked(evidence, replace(own, fallback=False))
    if own.fallback and alone is not None and alone.agrees(evidence.twin):
        return (
            "CPU fallback",
            f"the device gives {_said(evidence, alone)} where nothing may fall back to the CPU",
        )
    if own.ran == "compiled-cpu":
        return "CPU fallback", f"its {_accelerator(own)} took no node, so that the CPU ran them all"
    whole = next((vote for vote in evidence.others if vote.mode.ran == "compiled-cpu"), None)
    on_host = any(vote.agrees(device) for vote in evidence.host if vote.mode.ran == "xnnpack")
    if own.in_part and whole is not None and whole.agrees(device) and not on_host:
        return (
            "CPU fallback",
            f"{_fallen_back(own)} nodes fell back to the CPU, and the device gives"
            f" {_said(evidence, whole)} with all of them there",
        )
    return None


def _asked(evidence: Evidence, mode: ExecutionMode) -> Vote | None:
    """Return the device's vote in a mode, however many nodes it took then."""
    return next((vote for vote in evidence.others if _settings(vote.mode) == _settings(mode)), None)


def _settings(mode: ExecutionMode) -> ExecutionMode:
    return replace(mode, delegated=None, total=None)


def _accelerator(mode: ExecutionMode) -> str:
    return "accelerator" if mode.kernels is None else f"{mode.kernels.upper()} accelerator"


def _fallen_back(mode: ExecutionMode) -> str:
    assert mode.delegated is not None and mode.total is not None  # noqa: S101, PT018 - in part
    return f"{mode.total - mode.delegated} of {mode.total}"


def _said(evidence: Evidence, vote: Vote) -> str:
    return vote.failure or evidence.said(vote)
