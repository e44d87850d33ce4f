"""The model of a known issue of operators that are right alone and wrong together."""

from __future__ import annotations

import numpy as np

from edgeflare.conform.drafts.draft import FRESH, DraftNode, NodeGraphs
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.findings.issue_probes import RESULT, GraphProbe, ProbedOperator
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.errors import UserError


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
    settings = operator.probe.configuration
    node = DraftNode(operator.operator, operator.type, settings, operator.constants, ())
    operands = builder.graphs.operands(node)
    for name, value in zip(operator.reads, operands, strict=False):
        if name not in given and not RESULT.fullmatch(name):
            given[name] = builder.give(value)
    reads = {at: _tensor(name, given, results) for at, name in enumerate(operator.reads)}
    sources = (FRESH,) * len(operands)
    return DraftNode(node.operator, node.type, settings, operator.constants, sources), reads


def _tensor(name: str, given: dict[str, int], results: list[tuple[int, ...]]) -> int:
    """Return a tensor by its name."""
    found = RESULT.fullmatch(name)
    try:
        return given[name] if found is None else results[int(found[1])][int(found[2] or 0)]
    except (KeyError, IndexError):
        raise UserError(f"graph: there is no tensor {name!r}") from None
