"""Explanations of findings, made of a few fields: as `explain` has them, and as it writes them."""

from __future__ import annotations

from typing import Any

from documents import finding
from edgeflare.core.query import Arm
from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote
from edgeflare.diagnose.explain_document import ExplainedFinding
from edgeflare.diagnose.explanation import Explanation, explained_finding
from edgeflare.diagnose.layer_difference import Difference, KernelOnset
from edgeflare.diagnose.verdict import Verdict

EVIDENCE = Evidence(
    original=None,
    twin=Vote(ExecutionMode(Arm.TWIN, "xnnpack"), (0, 0), (1, 1)),
    host=(Vote(ExecutionMode(Arm.TWIN, "xnnpack"), (0, 0), (1, 1)),),
    device=Vote(ExecutionMode(Arm.DEVICE, "builtin"), (1, 1, 1), (2, 2, 2)),
)


def apart(units: float | None, real: float) -> Difference:
    """How far the values of a tensor are apart."""
    return Difference(units, real, 1.0, 30.0, real / 2, parted=bool(real))


def explanation(
    verdict: Verdict,
    onset: KernelOnset | None = None,
    error: CompressionError | None = None,
    **fields: Any,
) -> Explanation:
    """Why a finding of seed 3 deviates, and where it begins."""
    known: dict[str, Any] = {
        "finding": finding(seed_id=3, cause="kernel"),
        "device": "laboratory",
        "evidence": EVIDENCE,
        "non_finite": {},
        "device_queries": 3,
    }
    return Explanation(
        verdict=verdict,
        kernel_onset=onset or KernelOnset("none"),
        compression_error=error or CompressionError(),
        **(known | fields),
    )


def explained(
    verdict: Verdict,
    onset: KernelOnset | None = None,
    error: CompressionError | None = None,
    **fields: Any,
) -> ExplainedFinding:
    """The same as an entry of `explain.json`."""
    return explained_finding(explanation(verdict, onset, error, **fields))
