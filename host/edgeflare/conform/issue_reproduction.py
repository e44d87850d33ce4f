"""Known issues reproduced on kernels: the probe of each, judged by exact arithmetic.

A probe of several operators is held to these one by one on the same kernels, invoked as the issue's
arrangement says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs
from edgeflare.conform.execution.kernel_arm import KernelArm, PosedModel
from edgeflare.conform.findings.issue_probes import RESULT, GraphProbe, IssueProbe, ProbedOperator
from edgeflare.conform.findings.known_issues import KnownIssue
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.graphs.graph_verdict import invocation_told, judged_on
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.conform.runtime_arms import judged_alone
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.errors import UserError

ProbeOutcome = Literal["shows", "otherwise", "right", "refused"]
"""What became of an issue on some kernels: it fails as the issue says; it fails in another way; it
is right; the kernels refuse its model."""


@dataclass(frozen=True, slots=True)
class ProbedIssue:
    """An issue that was tried on the kernels of one place.

    Attributes:
        issue: the issue.
        outcome: what became of it.
        detail: more of it in words; empty where there is nothing to say.

    """

    issue: KnownIssue
    outcome: ProbeOutcome
    detail: str = ""


def probed_issues(
    issues: Sequence[KnownIssue],
    arm: KernelArm,
    tried: Callable[[int], None] = lambda _: None,
) -> list[ProbedIssue]:
    """Try issues on the kernels of one place, each model alone in a fresh process.

    Args:
        issues: issues that have a probe.
        arm: runs models there.
        tried: is called with the number of those that were tried.

    Raises:
        InfrastructureError: what runs them is lost.
        UserError: the operators of a probe do not fit together.

    """
    found = []
    for done, issue in enumerate(issues, 1):
        found.append(_probed(issue, arm))
        tried(done)
    return found


def _probed(issue: KnownIssue, arm: KernelArm) -> ProbedIssue:
    if issue.graph is not None:
        try:
            graph, times = probed_graph(issue.graph), issue.graph.times
        except UserError as error:
            raise UserError(f"{issue.name}: {error}") from None
        judge = partial(judged_on, graph, arm, invocation_told(issue.wired))
    elif issue.probe is not None:
        times = issue.probe.times
        judge = partial(judged_alone, *probe_model(issue.operator, issue.probe), arm)
    else:
        raise ValueError(f"{issue.name} has no probe")
    said = judge()
    for _ in range(times - 1):
        if said.symptom in issue.symptoms:
            break
        said = judge()
    return ProbedIssue(issue, _outcome(issue, said), said.detail.partition(";")[0])


def _outcome(issue: KnownIssue, said: KernelJudgement) -> ProbeOutcome:
    if said.symptom in issue.symptoms:
        return "shows"
    if said.verdict == "refused":
        return "refused"
    return "otherwise" if said.is_finding and said.verdict != "undefined" else "right"


def probe_model(operator: str, probe: IssueProbe) -> tuple[DraftNode, PosedModel]:
    """Return the operator of a probe, and its model with what that is given."""
    settings, rng = probe.configuration, np.random.default_rng(probe.constants)
    graph = known_operators()[operator].build(probe.type, settings, rng)
    sources = (FRESH,) * len(graph.inputs)
    node = DraftNode(operator, probe.type, settings, probe.constants, sources)
    return node, posed(Draft((node,)), {}).whole


def probed_graph(probe: GraphProbe) -> PosedModel:
    """Return the model of a probe with what it is given, which is drawn.

    Raises:
        UserError: an operator cannot read what it should, or there is no such result.

    """
    builder = GraphBuilder(np.random.default_rng(0), NodeGraphs())
    given: dict[str, int] = {}
    results: list[tuple[int, ...]] = []
    for place, operator in enumerate(probe.operators):
        written = builder.add(*_operator(builder, operator, given, results))
        if written is None:
            name = f"operator {place} ({operator.operator})"
            raise UserError(f"graph: {name} cannot read what it should")
        results.append(written)
    return builder.posed([_tensor(name, given, results) for name in probe.outputs])


def _operator(
    builder: GraphBuilder,
    operator: ProbedOperator,
    given: dict[str, int],
    results: list[tuple[int, ...]],
) -> tuple[DraftNode, dict[int, int]]:
    """Return an operator, and the tensors that it reads by which of its operands they are."""
    node = DraftNode(
        operator.operator, operator.type, operator.probe.configuration, operator.constants, ()
    )
    operands = builder.graphs.operands(node)
    for name, value in zip(operator.reads, operands, strict=False):
        if name not in given and not RESULT.fullmatch(name):
            given[name] = builder.give(value)
    reads = {at: _tensor(name, given, results) for at, name in enumerate(operator.reads)}
    return replace(node, sources=(FRESH,) * len(operands)), reads


def _tensor(name: str, given: dict[str, int], results: list[tuple[int, ...]]) -> int:
    """Return a tensor by its name."""
    found = RESULT.fullmatch(name)
    try:
        return given[name] if found is None else results[int(found[1])][int(found[2] or 0)]
    except (KeyError, IndexError):
        raise UserError(f"graph: there is no tensor {name!r}") from None
