"""Findings of a conformance run, tried again on each kernel set of a device, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflare.matrix.kernel_set_runs import KernelSetRun

if TYPE_CHECKING:  # a whole room, which every search would load
    from edgeflare.conform.record.conform_document import FoundFault
    from edgeflare.conform.retried_findings import RetriedFinding, RetryOutcome


@dataclass(frozen=True, slots=True)
class RetryMatrix:
    """What became of findings on the kernel sets of a device.

    Attributes:
        kernels: the kernel sets.
        findings: as the document of their run has them.
        outcomes: of each finding, what became of it on each kernel set.
        alone: of each finding, the one kernel set on which it fails; None where that is not so.

    """

    kernels: tuple[str, ...]
    findings: tuple[FoundFault, ...]
    outcomes: tuple[tuple[RetryOutcome, ...], ...]
    alone: tuple[str | None, ...]


def retry_matrix(runs: Sequence[KernelSetRun[Sequence[RetriedFinding]]]) -> RetryMatrix:
    """Compare what became of the same findings on several kernel sets."""
    done = [(one.profile.kernels, one.result) for one in runs if one.result is not None]
    kernels = tuple(name for name, _ in done)
    by_finding = list(zip(*(found for _, found in done), strict=True))
    outcomes = tuple(tuple(one.outcome for one in several) for several in by_finding)
    return RetryMatrix(
        kernels,
        tuple(several[0].finding for several in by_finding),
        outcomes,
        tuple(_alone(kernels, one) for one in outcomes),
    )


def _alone(kernels: Sequence[str], outcomes: Sequence[str]) -> str | None:
    fails = [
        name for name, one in zip(kernels, outcomes, strict=True) if one in ("still", "otherwise")
    ]
    return fails[0] if len(fails) == 1 and "mended" in outcomes else None
