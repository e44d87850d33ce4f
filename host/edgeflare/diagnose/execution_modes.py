"""Run the model on the same images in every execution mode, each more than once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.query import Arm
from edgeflare.core.tensor import GivenRows, RawBatch
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Precision, Profile
from edgeflare.devices.session import DeviceSession
from edgeflare.diagnose.output_stage import OutputStage
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Evaluator, Invocation, Signature
from edgeflare.models.tflite import open_tflite
from edgeflare.pages.facts import count_of
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels, accelerated

REPEATS = 3
"""Answers of the device in its own mode; a single one could be chance. Other modes give two."""

OTHER_REPEATS: Final = 2
"""Answers of every mode but the device's own: enough to see whether they are steady."""

MANY_THREADS: Final = max(2, min(4, os.cpu_count() or 1))
"""Threads in the modes with more than one: kernels that split their work do so from two on."""

_AT_ONCE = 2
"""Modes that are opened at the same time; most of that is waiting for a process to start."""


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """How a model is run: on which arm, with which kernels, on how many threads, how accelerated.

    Attributes:
        arm: the arm that runs it.
        kernels: the kernels that were asked for; None for an original, which has no choice.
        threads: interpreter threads.
        delegated: nodes that a delegate or an accelerator took; None where it is not known.
        total: nodes of the model; None where it is not known.
        precision: what an accelerator computes in, "fp16" where it likes or "fp32" throughout; None
            for kernels of a CPU.
        fallback: whether nodes that an accelerator does not take run on the CPU; likewise.

    """

    arm: Arm
    kernels: Kernels | None = None
    threads: int = 1
    delegated: int | None = None
    total: int | None = None
    precision: Precision | None = None
    fallback: bool | None = None

    @property
    def accelerated(self) -> bool:
        """Whether an accelerator was asked for."""
        return self.kernels is not None and accelerated(self.kernels)

    @property
    def ran(self) -> Kernels | None:
        """The kernels that really ran: what was asked for may have taken no node of the network."""
        if self.delegated == 0 and self.accelerated:
            return "compiled-cpu"
        return "builtin" if self.kernels == "xnnpack" and self.delegated == 0 else self.kernels

    @property
    def fallen_back(self) -> int:
        """How many nodes fell back to the CPU beside those that an accelerator took; else 0."""
        if not self.accelerated or not self.delegated or self.total is None:
            return 0
        return max(0, self.total - self.delegated)

    def __str__(self) -> str:
        if self.kernels is None:
            return self.arm.value
        if self.accelerated:
            precision = "" if self.precision is None else f", {self.precision}"
            fallback = ""
            if self.fallback and self.delegated is not None and self.total is not None:
                fallback = f", fallback of {self.total - self.delegated} of {self.total} nodes"
            return f"{self.arm.value}, {self.kernels}{precision}{fallback}"
        threads = count_of(self.threads, "thread")
        silent = " (nothing delegated)" if self.ran != self.kernels else ""
        return f"{self.arm.value}, {self.kernels}{silent}, {threads}"


@dataclass(frozen=True, slots=True)
class Vote:
    """The answers of one execution mode to one image, each time that it was asked.

    Attributes:
        mode: how the model was run.
        labels: top-1 label each time; None where it failed.
        outputs: a checksum of the raw output each time, without what a model leaves unwritten.
        tied: whether the two largest raw outputs were equal, the first time.
        failure: why there was no answer, the first time; None where there was one.
        probabilities: probability of each class, the first time; empty where it failed.
        answer: the first answer itself; None where only its label is known.

    """

    mode: ExecutionMode
    labels: tuple[int | None, ...]
    outputs: tuple[int, ...] = ()
    tied: bool = False
    failure: Failure | None = None
    probabilities: tuple[float, ...] = ()
    answer: Answer | None = None

    @property
    def label(self) -> int | None:
        """The label of the first answer."""
        return self.labels[0]

    @property
    def steady(self) -> bool:
        """Whether all answers are the same, to the bit."""
        return len(set(self.labels)) <= 1 and len(set(self.outputs)) <= 1

    @property
    def is_of_values(self) -> bool:
        """Whether the answers are values, texts or the like, of which labels say nothing."""
        return self.answer is not None and not self.answer.counted

    @property
    def measured_as(self) -> str:
        """What `measured` returns, such as "distance"."""
        return Answer.measured_as if self.answer is None else self.answer.measured_as

    def agrees(self, other: Vote) -> bool:
        """Whether two modes answered alike, as the task compares answers; or failed alike."""
        if self.failure is not None or other.failure is not None:
            return self.failure == other.failure
        if self.answer is None or other.answer is None:
            return self.label == other.label
        return not self.answer.differs(other.answer)

    def measured(self, other: Vote) -> float | None:
        """Return how far apart two modes are, see `measured_as`; None of labels and failures."""
        if not self.is_of_values or self.failure is not None or other.failure is not None:
            return None
        assert self.answer is not None and other.answer is not None  # noqa: S101, PT018
        return self.answer.measured(other.answer)


def ask(
    mode: ExecutionMode,
    evaluator: Evaluator,
    stage: OutputStage,
    given: GivenRows,
    times: int,
) -> list[Vote]:
    """Run a model on inputs several times, each time as a batch of its own.

    Args:
        mode: how the model is run, as votes report it.
        evaluator: the model.
        stage: reads answers from its outputs.
        given: what it is given.
        times: number of answers to each.

    Returns:
        A vote for each input.

    """
    return votes(mode, stage, evaluator.signature, given, repeated(evaluator, given, times))


def repeated(evaluator: Evaluator, given: GivenRows, times: int) -> list[RawBatch]:
    """Run a model on inputs several times, each time as a batch of its own."""
    return [evaluator.submit(given.rows).result() for _ in range(times)]


def votes(
    mode: ExecutionMode,
    stage: OutputStage,
    signature: Signature,
    given: GivenRows,
    batches: Sequence[RawBatch],
) -> list[Vote]:
    """Return a vote for each input, from the raw outputs of all times that it was asked about."""
    answers = [stage.answers(signature, given, batch) for batch in batches]
    checksums = [stage.checksums(signature, batch) for batch in batches]
    return [
        _vote(mode, list(said), list(sums))
        for said, sums in zip(zip(*answers, strict=True), zip(*checksums, strict=True), strict=True)
    ]


def ask_host(
    path: Path,
    stage: OutputStage,
    given: GivenRows,
    invocation: Invocation = ONCE,
    opened: Mapping[ExecutionMode, Evaluator] | None = None,
) -> dict[ExecutionMode, list[Vote]]:
    """Run the twin with each of the host's kernel sets, on one thread and on several.

    Modes in which the host's runtime refuses the model are left out.

    Args:
        path: the compressed model.
        stage: reads answers from its outputs.
        given: what it is given.
        invocation: how it is called.
        opened: models that are open already, by mode.

    Returns:
        By mode, a vote for each input.

    """

    def asked(mode: ExecutionMode) -> tuple[ExecutionMode, list[Vote]] | None:
        if opened and mode in opened:
            return mode, ask(mode, opened[mode], stage, given, OTHER_REPEATS)
        try:
            model = open_tflite(path, mode.kernels or "xnnpack", invocation, mode.threads)
        except UserError:
            return None
        with closing(model):
            return mode, ask(mode, model, stage, given, OTHER_REPEATS)

    modes = [
        ExecutionMode(Arm.TWIN, kernels, threads)
        for kernels in TFLITE_KERNEL_SETS
        for threads in (1, MANY_THREADS)
    ]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="edgeflare-vote") as pool:
        return dict(found for found in pool.map(asked, modes) if found is not None)


def ask_device(
    device: Device,
    path: Path,
    stage: OutputStage,
    given: GivenRows,
    invocation: Invocation = ONCE,
) -> tuple[list[Vote], Mapping[ExecutionMode, list[Vote]]]:
    """Run the device in its profile's mode, then in others; see `_other_modes`.

    Modes that it refuses are left out; delegates of vendors have no number of threads.

    Returns:
        The votes in the profile's mode, and by mode those in others.

    Raises:
        UserError: the device refuses the model.

    """
    with closing(device.open(path, invocation)) as session:
        mode = mode_of_session(device.profile, session)
        own = ask(mode, session, stage, given, REPEATS)
    others: dict[ExecutionMode, list[Vote]] = {}
    for wanted in _other_modes(device):
        with suppress(UserError), closing(_opened(device, path, wanted, invocation)) as other:
            mode = replace(wanted, delegated=other.delegated_nodes, total=other.total_nodes)
            others[mode] = ask(mode, other, stage, given, OTHER_REPEATS)
    return own, others


def mode_of_session(profile: Profile, session: DeviceSession) -> ExecutionMode:
    """Return the mode in which a device runs a model that it has open as its profile says."""
    return replace(
        _mode_of_profile(profile), delegated=session.delegated_nodes, total=session.total_nodes
    )


def _mode_of_profile(profile: Profile) -> ExecutionMode:
    mode = ExecutionMode(Arm.DEVICE, profile.kernels, profile.threads)
    if not mode.accelerated:
        return mode
    return replace(mode, precision=profile.precision, fallback=profile.fallback)


def _other_modes(device: Device) -> Iterator[ExecutionMode]:
    """Yield modes that differ from the profile's in one thing each, and in the kernels of the CPU.

    An accelerator has no threads. It is asked in float32, without the fallback that it is allowed,
    and about the whole model on the CPU of its own runtime.
    """
    profile, own = device.profile, _mode_of_profile(device.profile)
    if own.accelerated:
        if own.precision == "fp16":
            yield replace(own, precision="fp32")
        if own.fallback:
            yield replace(own, fallback=False)
        if "compiled-cpu" in device.kernels:
            yield ExecutionMode(Arm.DEVICE, "compiled-cpu", profile.threads)
    for kernels in device.kernels:
        if kernels in TFLITE_KERNEL_SETS and kernels != profile.kernels:
            yield ExecutionMode(Arm.DEVICE, kernels, profile.threads)
    if (threads := other_threads(profile)) is not None:
        yield replace(own, threads=threads)


def other_threads(profile: Profile) -> int | None:
    """Return another number of threads than a profile's; None where its kernels have no threads."""
    if not KERNEL_SETS[profile.kernels].threads:
        return None
    return 1 if profile.threads > 1 else MANY_THREADS


def _opened(
    device: Device, path: Path, mode: ExecutionMode, invocation: Invocation
) -> DeviceSession:
    assert mode.kernels is not None  # noqa: S101 - a device has a choice
    return device.open_as(
        path,
        mode.kernels,
        mode.threads,
        invocation,
        precision=mode.precision,
        fallback=mode.fallback,
    )


def _vote(mode: ExecutionMode, answers: Sequence[Answer], checksums: Sequence[int]) -> Vote:
    first = answers[0]
    return Vote(
        mode=mode,
        labels=tuple(answer.decision for answer in answers),
        outputs=tuple(checksums),
        tied=first.tied,
        failure=first.failure,
        probabilities=() if first.failure else tuple(float(p) for p in first.probabilities),
        answer=first,
    )
