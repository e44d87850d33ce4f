"""Asking every way of running the model about the same images, each more than once."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.devices.device import Device
from edgeflare.diagnose.evidence import REPEATS, ExecutionMode, Vote
from edgeflare.errors import UserError
from edgeflare.models.decode import Decoder
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.output_decoders import read_answers
from edgeflare.models.tflite import Kernels, open_tflite

OTHER_REPEATS: Final = 2
"""Of everything but the device as it is: enough to see that it is steady."""

MANY_THREADS: Final = max(2, min(4, os.cpu_count() or 1))
"""What stands for "more than one thread": kernels that split their work do so at two."""

_AT_ONCE = 2
"""Ways that are opened at the same time; most of it is waiting for a process to start."""


def ask(
    way: ExecutionMode,
    evaluator: Evaluator,
    decoder: Decoder,
    inputs: NDArray[np.generic],
    times: int,
) -> list[Vote]:
    """Ask a model about inputs several times, each time in a batch of its own.

    Returns:
        A vote for each input.

    Raises:
        InfrastructureError: the model or its device was lost.

    """
    answers: list[list[Answer]] = []
    checksums: list[list[int]] = []
    for _ in range(times):
        batch = evaluator.submit(inputs).result()
        answers.append(list(read_answers(decoder, batch)))
        checksums.append([zlib.crc32(output.tobytes()) for output in batch.outputs])
    return [
        _vote(way, list(said), list(sums))
        for said, sums in zip(zip(*answers, strict=True), zip(*checksums, strict=True), strict=True)
    ]


def ask_host(
    path: Path,
    decoder: Decoder,
    inputs: NDArray[np.generic],
    opened: Mapping[ExecutionMode, Evaluator] | None = None,
) -> dict[ExecutionMode, list[Vote]]:
    """Ask the twin under all the host's kernels, on one thread and on several.

    Ways in which the host's runtime refuses the model are left out.

    Args:
        path: the compressed model.
        decoder: from its outputs to labels.
        inputs: as it takes them.
        opened: ways in which it is open already.

    """

    def votes(way: ExecutionMode) -> tuple[ExecutionMode, list[Vote]] | None:
        if opened and way in opened:
            return way, ask(way, opened[way], decoder, inputs, OTHER_REPEATS)
        try:
            model = open_tflite(path, _named(way.kernels), way.threads)
        except UserError:
            return None
        with closing(model):
            return way, ask(way, model, decoder, inputs, OTHER_REPEATS)

    ways = [
        ExecutionMode(Arm.TWIN, kernels, threads)
        for kernels in get_args(Kernels)
        for threads in (1, MANY_THREADS)
    ]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="edgeflare-vote") as pool:
        return dict(found for found in pool.map(votes, ways) if found is not None)


def ask_device(
    device: Device, path: Path, decoder: Decoder, inputs: NDArray[np.generic]
) -> tuple[list[Vote], Mapping[ExecutionMode, list[Vote]]]:
    """Ask the device as it is, then under its other kernels and with other threads.

    Ways that it refuses are left out; vendors' delegates know no other threads.

    Returns:
        Its votes as it is, and by way those under others.

    Raises:
        UserError: the device refuses the model.
        InfrastructureError: it was lost.

    """
    profile = device.profile
    with closing(device.open(path)) as session:
        way = ExecutionMode(Arm.DEVICE, profile.kernels, profile.threads, session.delegated_nodes)
        own = ask(way, session, decoder, inputs, REPEATS)
    others: dict[ExecutionMode, list[Vote]] = {}
    threads = 1 if profile.threads > 1 else MANY_THREADS
    wanted = [(kernels, profile.threads) for kernels in device.kernels]
    for kernels, count in [*wanted, (profile.kernels, threads)]:
        if (kernels, count) == (profile.kernels, profile.threads):
            continue
        with suppress(UserError), closing(device.open_as(path, kernels, count)) as other:
            way = ExecutionMode(Arm.DEVICE, kernels, count, other.delegated_nodes)
            others[way] = ask(way, other, decoder, inputs, OTHER_REPEATS)
    return own, others


def _named(kernels: Kernels | None) -> Kernels:
    return kernels or "xnnpack"


def _vote(way: ExecutionMode, answers: Sequence[Answer], checksums: Sequence[int]) -> Vote:
    first = answers[0]
    return Vote(
        way=way,
        labels=tuple(answer.label for answer in answers),
        outputs=tuple(checksums),
        tied=first.tied,
        failure=first.failure,
        probabilities=() if first.failure else tuple(float(p) for p in first.probabilities),
    )
