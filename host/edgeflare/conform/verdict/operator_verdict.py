"""The verdict on the answers to a model of one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure, RunFailureKind
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.verdict.arm_comparison import DEVICE, TWIN, ArmComparison, ArmErrors, Ruler
from edgeflare.conform.verdict.exact_rows import exact_rows, usual_rows
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement, Symptom, in_units
from edgeflare.conform.verdict.right_values import RightValues, allowance
from edgeflare.pages.facts import count_of

_SYMPTOMS: Mapping[RunFailureKind, Symptom] = {
    "crash": "crash",
    "hang": "hang",
    "misshapen": "wrong-shape",
}

_FAR_WORSE = 2.0
"""Factor by which a wrong device has to be farther off than the host's kernel sets, where all of
these are wrong too, to be blamed alone."""


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
        specification: the operator's declaration.
        type_: the operator's type.
        graph: graph of the operator alone.
        operands: one array for each of the graph's inputs, (rows, *shape) in its dtype.
        answers: answers of "device" and of kernel sets of the host, by their names.

    """
    failure = answers[DEVICE].failure
    if failure is not None and failure.kind == "misshapen":
        (node,) = graph.nodes
        return _judged_misshapen(failure, graph.results(node), answers)
    if failure is not None:
        return _judged_without_answer(failure, answers)
    rows = len(answers[DEVICE].outputs[0])
    measure = ruler(specification, type_, graph, operands, rows)
    compared = ArmComparison.of(measure, answers)
    deviation = _judged_deviation(compared)
    if deviation is not None and deviation.counted:
        return deviation
    if answers[DEVICE].neighbours:
        return _judged_beside_others(answers)
    telling = 0 if compared.is_doubtful else measure.telling
    return (
        _judged_undefined(compared)
        or deviation
        or _judged_hosts(compared)
        or replace(_judged_agreement(compared), telling=telling)
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
        specification: the operator's declaration.
        type_: the operator's type.
        graph: graph of the operator alone.
        operands: one array for each of the graph's inputs, (rows, *shape) in its dtype.
        rows: rows of an answer.

    """
    exact = exact_rows(specification, graph, operands, rows)
    allowed = allowance(specification.operator, type_)
    (node,) = graph.nodes
    results = [
        RightValues(value, answer, allowed)
        for value, answer in zip(graph.results(node), exact, strict=True)
    ]
    return Ruler.of(results, usual_rows(graph, operands, rows))


def _judged_deviation(compared: ArmComparison) -> KernelJudgement | None:
    """Return what is said of a device that is wrong; None if it is right.

    A kernel of the host may be wrong in other places of its own. So the device is held to the
    places where it is wrong and answers otherwise than the twin.
    """
    if not compared.is_wrong(compared.device):
        return None
    wrong = compared.device.wrong & compared.ruler.judged
    own = wrong & ~compared.same
    if own.any() and _stands_alone(compared, own):
        return _deviation(compared, own)
    if _is_biased_alone(compared):
        return _bias(compared, counted=True)
    return _deviation(compared, wrong, shared=True) if wrong.any() else _bias(compared)


def _stands_alone(compared: ArmComparison, own: NDArray[np.bool_]) -> bool:
    if compared.right or not compared.hosts:
        return True
    theirs = max(_furthest(host, own) for host in compared.hosts.values())
    return _furthest(compared.device, own) > _FAR_WORSE * max(theirs, 1.0)


def _is_biased_alone(compared: ArmComparison) -> bool:
    mean = abs(compared.device.mean)
    if mean == 0 or bool(compared.same[compared.ruler.judged].all()):
        return False
    if compared.right or not compared.hosts:
        return True
    theirs = max(abs(host.mean) for host in compared.hosts.values())
    least = max(right.allowance.mean for right in compared.ruler.results)
    return mean > _FAR_WORSE * max(theirs, least)


def _deviation(
    compared: ArmComparison, among: NDArray[np.bool_], *, shared: bool = False
) -> KernelJudgement:
    worst, unit = compared.ruler.worst(compared.device, among)
    wrong, values = int(among.sum()), int(compared.ruler.judged.sum())
    share = f"{wrong:,} of {count_of(values, 'value')} {'is' if wrong == 1 else 'are'} wrong"
    size = f", by up to {in_units(worst, unit)}" if unit else ""
    return KernelJudgement(
        verdict="shared" if shared else "device",
        symptom=_symptom(compared.device, among),
        counted=not shared,
        worst=worst,
        unit=unit,
        wrong=(DEVICE, *compared.wrong),
        detail=f"{share}{size}; {_witnesses(compared)}",
    )


def _bias(compared: ArmComparison, *, counted: bool = False) -> KernelJudgement:
    mean = compared.device.mean
    return KernelJudgement(
        verdict="device" if counted else "shared",
        symptom="biased",
        counted=counted,
        worst=abs(mean),
        unit="steps",
        wrong=(DEVICE, *compared.wrong),
        detail=f"values are off by {mean:+.2f} steps on average; {_witnesses(compared)}",
    )


def _judged_undefined(compared: ArmComparison) -> KernelJudgement | None:
    """Return what is said of a device that differs where numbers end; None if it does not."""
    apart = compared.device.wrong & ~compared.ruler.judged
    if apart.any() and TWIN in compared.outputs:
        outputs = compared.outputs
        apart &= ~compared.ruler.alike(outputs[DEVICE], outputs[TWIN])
    if not apart.any():
        return None
    worst, unit = compared.ruler.worst(compared.device, apart)
    hosts = [name for name, host in compared.hosts.items() if (host.wrong & apart).any()]
    differing = int(apart.sum())
    what = "beside NaN, infinities, denormals or numbers near them, or without values"
    return KernelJudgement(
        verdict="undefined",
        symptom=_symptom(compared.device, apart),
        worst=worst,
        unit=unit,
        wrong=(DEVICE, *hosts),
        detail=f"{count_of(differing, 'value')} differ{'s' * (differing == 1)} {what}",
    )


def _judged_hosts(compared: ArmComparison) -> KernelJudgement | None:
    """Return what is said of kernel sets of the host that are wrong where the device is right.

    Those that crash, hang or answer in another shape are, too. None if there are none.
    """
    wrong = (*compared.wrong, *compared.lost)
    if not wrong:
        return None
    alone = " alone is wrong" if len(wrong) == 1 else " are wrong"
    names = [f"{host} ({compared.lost[host]})" if host in compared.lost else host for host in wrong]
    detail = " and ".join(names) + alone
    if not compared.wrong:
        (kind, *_) = compared.lost.values()
        return KernelJudgement("host", _SYMPTOMS[kind], wrong=wrong, detail=detail)
    places = compared.ruler.judged
    errors = [compared.hosts[host] for host in compared.wrong]
    furthest = max(errors, key=lambda arm_errors: _furthest(arm_errors, places))
    among = furthest.wrong & places
    if not among.any():
        mean = max(abs(arm.mean) for arm in errors)
        return KernelJudgement(
            "host", "biased", worst=mean, unit="steps", wrong=wrong, detail=detail
        )
    worst, unit = compared.ruler.worst(furthest, among)
    symptom = _symptom(furthest, among)
    return KernelJudgement("host", symptom, worst=worst, unit=unit, wrong=wrong, detail=detail)


def _judged_agreement(compared: ArmComparison) -> KernelJudgement:
    """Return what is said of a device that is right: what its rounding differs from the twin's."""
    if TWIN not in compared.outputs or bool(compared.same[compared.ruler.judged].all()):
        return KernelJudgement("right")
    outputs = compared.outputs
    worst, unit = compared.ruler.difference(outputs[DEVICE], outputs[TWIN])
    return (
        KernelJudgement("rounding", worst=worst, unit=unit) if worst else KernelJudgement("right")
    )


def _furthest(arm: ArmErrors, among: NDArray[np.bool_]) -> float:
    return float(np.max(arm.offences, where=among, initial=0.0))


def _symptom(arm: ArmErrors, among: NDArray[np.bool_]) -> Symptom:
    return "not-finite" if bool(np.isinf(arm.errors[among]).any()) else "wrong-values"


def _witnesses(compared: ArmComparison) -> str:
    """Say which kernel sets of the host are right."""
    right = compared.right
    if right:
        return f"{' and '.join(right)} {'is' if len(right) == 1 else 'are'} right"
    if compared.hosts:
        return f"so {'is' if len(compared.hosts) == 1 else 'are'} {' and '.join(compared.hosts)}"
    return "no kernel set of the host answers"


def _judged_without_answer(
    failure: RunFailure, answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    """Return what is said of a model that the device refused, or that crashed or hung it.

    What the twin does not survive either is not counted. An error that the runtime answers is a
    refusal that comes late.

    Args:
        failure: the device's.
        answers: answers of all arms, by their names.

    """
    if failure.kind not in LOST:
        return KernelJudgement("refused", "refused", wrong=(DEVICE,), detail=failure.detail)
    verdict: Literal["crash", "hang"] = "crash" if failure.kind == "crash" else "hang"
    lost = [
        name
        for name, answer in answers.items()
        if name != DEVICE and answer.failure is not None and answer.failure.kind in LOST
    ]
    counted = TWIN not in lost
    symptom = "corrupts" if answers[DEVICE].corrupts else verdict
    return KernelJudgement(verdict, symptom, counted, wrong=(DEVICE, *lost), detail=failure.detail)


def _judged_misshapen(
    failure: RunFailure, results: Sequence[GraphValue], answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    """Return what is said of a model whose answer has another shape or type than it says.

    Args:
        failure: the device's.
        results: what the model says.
        answers: answers of all arms, by their names.

    """
    hosts = [
        name
        for name, answer in answers.items()
        if name != DEVICE and answer.failure is not None and answer.failure.kind == "misshapen"
    ]
    answered = any(answer.failure is None for answer in answers.values())
    verdict: Literal["device", "shared", "undefined"] = "device"
    if not all(result.size for result in results):
        verdict = "undefined"
    elif TWIN in hosts or not answered:
        verdict = "shared"
    return KernelJudgement(
        verdict,
        "wrong-shape",
        counted=verdict == "device",
        wrong=(DEVICE, *hosts),
        detail=failure.detail,
    )


def _judged_beside_others(answers: Mapping[str, ModelAnswer]) -> KernelJudgement:
    """Return what is said of a model whose answer depends on its neighbours in a file.

    It is not counted where a kernel set of the host depends on them, too, which has to be run alone
    as well to know.
    """
    hosts = [name for name, answer in answers.items() if name != DEVICE and answer.neighbours]
    verdict: Literal["shared", "device"] = "shared" if hosts else "device"
    detail = "beside other models the answer is another than alone"
    wrong = (DEVICE, *hosts)
    return KernelJudgement(verdict, "neighbours", counted=not hosts, wrong=wrong, detail=detail)
