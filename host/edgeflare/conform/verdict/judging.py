"""The verdict on the answers to a model of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from edgeflare.conform.execution.kernel_arm import ModelAnswer
from edgeflare.conform.graphs.operator_graph import OperatorGraph, Values
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.verdict.arm_comparison import DEVICE, ArmComparison
from edgeflare.conform.verdict.arm_errors import Ruler
from edgeflare.conform.verdict.blame import (
    judged_agreement,
    judged_deviation,
    judged_hosts,
    judged_undefined,
)
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.conform.verdict.exceptions import allowance
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.conform.verdict.no_answer import (
    judged_beside_others,
    judged_misshapen,
    judged_without_answer,
)
from edgeflare.conform.verdict.right_values import RightValues
from edgeflare.conform.verdict.usual_rows import usual_rows


def judged(
    specification: OperatorSpecification,
    type_: str,
    graph: OperatorGraph,
    operands: Sequence[Values],
    answers: Mapping[str, ModelAnswer],
) -> KernelJudgement:
    """Return what is said of a model of one operator.

    Kernels that are alike on device and host are never counted against the device: where it is
    wrong, the twin then gives the same answer. What is wrong alone is said to be wrong, whether or
    not the answer is another beside other models.

    Args:
        specification: of the operator.
        type_: of the operator.
        graph: of the operator alone.
        operands: one array for each of the graph's inputs, (rows, *shape) in its dtype.
        answers: of "device" and of kernel sets of the host, by their names.

    """
    failure = answers[DEVICE].failure
    if failure is not None and failure.kind == "misshapen":
        (node,) = graph.nodes
        return judged_misshapen(failure, graph.results(node), answers)
    if failure is not None:
        return judged_without_answer(failure, answers)
    rows = len(answers[DEVICE].outputs[0])
    measure = ruler(specification, type_, graph, operands, rows)
    compared = ArmComparison.of(measure, answers)
    deviation = judged_deviation(compared)
    if deviation is not None and deviation.counted:
        return deviation
    if answers[DEVICE].neighbours:
        return judged_beside_others(answers)
    telling = 0 if compared.is_doubtful else measure.telling
    return (
        judged_undefined(compared)
        or deviation
        or judged_hosts(compared)
        or replace(judged_agreement(compared), telling=telling)
    )


def ruler(
    specification: OperatorSpecification,
    type_: str,
    graph: OperatorGraph,
    operands: Sequence[Values],
    rows: int,
) -> Ruler:
    """Return what the answers to a model of one operator are measured by.

    Args:
        specification: of the operator.
        type_: of the operator.
        graph: of the operator alone.
        operands: one array for each of the graph's inputs, (rows, *shape) in its dtype.
        rows: of an answer.

    """
    exact = exact_rows(specification, graph, operands, rows)
    allowed = allowance(specification.operator, type_)
    (node,) = graph.nodes
    results = [
        RightValues(value, one, allowed)
        for value, one in zip(graph.results(node), exact, strict=True)
    ]
    return Ruler.of(results, usual_rows(graph, operands, rows))
