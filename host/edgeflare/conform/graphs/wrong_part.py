"""The least part of a user's model that is wrong on a device, and right one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.conform.execution.kernel_arm import KernelArm, PosedModel
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.graphs.graph_verdict import judge_graphs


@dataclass(frozen=True, slots=True)
class WrongPart:
    """Operators that are right alone, and wrong together.

    Attributes:
        key: the operators, such as "SPLIT then ADD", and how they fail.
        arrangement: how they hang together.

    """

    key: FindingKey
    arrangement: tuple[str, ...]


def wrong_part(model: PosedModel, arms: Sequence[KernelArm], seconds: float) -> WrongPart | None:
    """Cut a model to its least part that a device still gets wrong.

    Args:
        model: the whole model, and what it is given.
        arms: the device first, then the host's kernel sets.
        seconds: when cutting ends; what is under way is ended, which is some dozens of models.

    Returns:
        None where the whole model answers as its operators one by one, or one of them is wrong
        alone.

    Raises:
        InfrastructureError: an arm is lost.

    """
    end = time.monotonic() + seconds
    (judged,) = judge_graphs([model], arms)
    if judged.judgement is None or not judged.fails:
        return None
    failing = FailingGraph(model, judged.judgement, judged.invocation, judged.wrong)
    findings = GraphFindings([failing], arms)
    for counted in (True, False):
        findings.shrink(counted, lambda: None, lambda: time.monotonic() > end)
    return next((WrongPart(*found) for found in findings.keys), None)
