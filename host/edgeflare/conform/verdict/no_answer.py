"""What is said of a model that the device gave no answer to, or none that can be relied on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure
from edgeflare.conform.graphs.operator_graph import GraphValue
from edgeflare.conform.verdict.arm_comparison import DEVICE, TWIN
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement


def judged_without_answer(
    failure: RunFailure, answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    """Return what is said of a model that the device refused, or that crashed or hung it.

    What the twin does not survive either is not counted. An error that the runtime answers is a
    refusal that comes late.

    Args:
        failure: the device's.
        answers: of all arms, by their names.

    """
    if failure.kind not in LOST:
        return KernelJudgement("refused", "refused", wrong=(DEVICE,), detail=failure.detail)
    verdict: Literal["crash", "hang"] = "crash" if failure.kind == "crash" else "hang"
    lost = [name for name, one in answers.items() if name != DEVICE and _is_lost(one)]
    counted = TWIN not in lost
    symptom = "corrupts" if answers[DEVICE].corrupts else verdict
    return KernelJudgement(verdict, symptom, counted, wrong=(DEVICE, *lost), detail=failure.detail)


def judged_misshapen(
    failure: RunFailure, results: Sequence[GraphValue], answers: Mapping[str, ModelAnswer]
) -> KernelJudgement:
    """Return what is said of a model whose answer has another shape or type than it says.

    Args:
        failure: the device's.
        results: what the model says.
        answers: of all arms, by their names.

    """
    hosts = [
        name
        for name, one in answers.items()
        if name != DEVICE and one.failure is not None and one.failure.kind == "misshapen"
    ]
    answered = any(one.failure is None for one in answers.values())
    verdict: Literal["device", "shared", "undefined"] = "device"
    if not all(one.size for one in results):
        verdict = "undefined"
    elif TWIN in hosts or not answered:
        verdict = "shared"
    return KernelJudgement(
        verdict,
        "wrong shape",
        counted=verdict == "device",
        wrong=(DEVICE, *hosts),
        detail=failure.detail,
    )


def judged_beside_others(answers: Mapping[str, ModelAnswer]) -> KernelJudgement:
    """Return what is said of a model whose answer depends on its neighbours in a file.

    It is not counted where a kernel set of the host depends on them, too, which has to be run alone
    as well to know.
    """
    hosts = [name for name, one in answers.items() if name != DEVICE and one.neighbours]
    verdict: Literal["shared", "device"] = "shared" if hosts else "device"
    detail = "beside other models the answer is another than alone"
    wrong = (DEVICE, *hosts)
    return KernelJudgement(verdict, "neighbours", counted=not hosts, wrong=wrong, detail=detail)


def _is_lost(answer: ModelAnswer) -> bool:
    return answer.failure is not None and answer.failure.kind in LOST
