"""The same inputs given to a device in other ways: on more threads, and as items of one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, unpack_rows
from edgeflare.devices.device import Device
from edgeflare.diagnose.execution_modes import other_threads
from edgeflare.diagnose.layers.layer_figures import ErrorSums
from edgeflare.errors import UserError
from edgeflare.models.decoder_rows import as_read_by
from edgeflare.models.evaluator import Evaluator, Invocation, Signature
from edgeflare.release.figures.device_figures import InvocationVariant

INPUTS: Final = 16
"""Inputs that are given in each way; enough to see what is wrong on one in five, at little cost."""

_BATCH: Final = 4
"""Items of a batch."""


@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """What a model answered to some inputs.

    Attributes:
        tensors: output tensors of the model.
        raw: values of the outputs.
        answers: meaning of the outputs; empty where nobody can say.

    """

    tensors: tuple[Tensor, ...]
    raw: RawBatch
    answers: Sequence[Answer] = ()


Ask = Callable[[Evaluator], ReadOutputs]
"""Gives some inputs to a model, and returns what it answered."""


def pair_variants(
    opened: OpenedPair, places: Sequence[int], stopped: Callable[[], bool]
) -> tuple[InvocationVariant, ...]:
    """Give a few inputs of a pair to its device in each other way that it allows.

    Args:
        opened: the pair, on one device.
        places: the positions of inputs among its seeds, those first that are given first.
        stopped: whether to come to an end.

    """
    pair = opened.pair
    few = list(places[:INPUTS])
    ids = [opened.seeds.seed_ids[at] for at in few]
    arm = opened.panel.device_of(ids[0])
    given = arm.given(opened.seeds.inputs[few], ids)

    def ask(model: Evaluator) -> ReadOutputs:
        read = replace(arm, evaluator=as_read_by(pair.interface.on_device, model))
        raw = read.submit(given).result()
        return ReadOutputs(read.evaluator.signature.outputs, raw, list(read.decoder.read(raw)))

    called = pair.interface.invocation
    return device_variants(opened.devices[0], pair.executed, called, ask, stopped)


def variant_seconds(each: float) -> float:
    """Return about how many seconds it takes, where all arms take so many for an input."""
    return _OPENING_SECONDS + 3 * INPUTS * each


_OPENING_SECONDS: Final = 0.5
"""Seconds to open a small model three times on an emulated device."""


def device_variants(
    device: Device, path: Path, invocation: Invocation, ask: Ask, stopped: Callable[[], bool]
) -> tuple[InvocationVariant, ...]:
    """Give inputs to a model on a device in each other way that it allows.

    Args:
        device: a connected device.
        path: the `.tflite` file.
        invocation: how it is called on one input.
        ask: gives it the inputs.
        stopped: whether to come to an end.

    Returns:
        How the answers compare with those to the same inputs one by one, with the threads of the
        profile.

    """
    profile, found = device.profile, list[InvocationVariant]()
    with closing(device.open_as(path, profile.kernels, profile.threads, invocation)) as own:
        before = ask(own)
        signature = own.signature
    threads = other_threads(profile)
    if threads is not None and not stopped():
        with (
            suppress(UserError),
            closing(device.open_as(path, profile.kernels, threads, invocation)) as other,
        ):
            found.append(_compared("threads", threads, before, ask(other)))
    batched = _in_batches(invocation, signature)
    if batched is not None and not stopped():
        with (
            suppress(UserError),
            closing(device.open_as(path, profile.kernels, profile.threads, batched)) as other,
        ):
            if _holds_batches(signature, other.signature):
                items = _OneByOne(other, signature)
                found.append(_compared("batch", _BATCH, before, ask(items)))
    return tuple(found)


def _in_batches(invocation: Invocation, signature: Signature) -> Invocation | None:
    """Return how a model is called on a batch; None where an input is a clip, or no item."""
    inputs = signature.inputs
    if invocation.frames or invocation.state or any(input_.shape[:1] != (1,) for input_ in inputs):
        return None
    return replace(
        invocation, shapes={input_.name: (_BATCH, *input_.shape[1:]) for input_ in signature.inputs}
    )


def _holds_batches(signature: Signature, batched: Signature) -> bool:
    """Whether each output has as many items as a batch."""
    return [(_BATCH, *tensor.shape[1:]) for tensor in signature.outputs] == [
        tensor.shape for tensor in batched.outputs
    ] and all(tensor.shape[:1] == (1,) for tensor in signature.outputs)


@dataclass(frozen=True, slots=True)
class _OneByOne:
    """A model that runs on batches, as one that is given items.

    Attributes:
        model: the model that runs on batches.
        signature: signature for a single item.

    """

    model: Evaluator
    signature: Signature

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        """Run items in batches; the last one is filled up with the first items."""
        count = len(inputs)
        batches = -(-count // _BATCH)
        filled = np.resize(np.arange(count), batches * _BATCH)
        arrays = unpack_rows(self.signature.inputs, inputs[filled])
        theirs, batched = self.model.signature.inputs, list[NDArray[np.generic]]()
        for tensor, array in zip(theirs, arrays, strict=True):
            batched.append(array.reshape(batches, *tensor.shape))
        made = self.model.submit(pack_rows(theirs, batched)).result()
        outputs = [
            array.reshape(batches * _BATCH, *tensor.shape)[:count]
            for tensor, array in zip(
                self.signature.outputs,
                unpack_rows(self.model.signature.outputs, made.outputs),
                strict=True,
            )
        ]
        failures = {
            at: made.failures[at // _BATCH] for at in range(count) if at // _BATCH in made.failures
        }
        future: Future[RawBatch] = Future()
        future.set_result(
            RawBatch(
                pack_rows(self.signature.outputs, outputs).reshape(count, -1),
                failures,
                made.busy_seconds,
            )
        )
        return future

    def close(self) -> None:
        """Close the model."""
        self.model.close()


def _compared(
    kind: Literal["threads", "batch"], size: int, before: ReadOutputs, now: ReadOutputs
) -> InvocationVariant:
    there = [at for at in range(len(before.raw.outputs)) if at not in before.raw.failures]
    failed = [at for at in there if at in now.raw.failures]
    both = [at for at in there if at not in now.raw.failures]
    others = [
        at for at in both if before.raw.outputs[at].tobytes() != now.raw.outputs[at].tobytes()
    ]
    pairs = list(zip(before.answers, now.answers, strict=True))
    changed = [at for at in others if pairs and pairs[at][0].differs_strictly(pairs[at][1])]
    return InvocationVariant(
        kind=kind,
        size=size,
        inputs=len(there),
        failed=len(failed),
        others=len(others),
        changed=len(changed) if pairs else None,
        snr_db=min(_decibels(before, now, both), default=None),
    )


def _decibels(before: ReadOutputs, now: ReadOutputs, places: Sequence[int]) -> Iterator[float]:
    """Yield how far each output is apart that is not equal, as signal to noise in decibels."""
    wanted, got = (
        unpack_rows(read_outputs.tensors, read_outputs.raw.outputs[list(places)])
        for read_outputs in (before, now)
    )
    for tensor, first, second in zip(before.tensors, wanted, got, strict=True):
        sums = ErrorSums()
        for values, other in zip(
            dequantize(first, tensor), dequantize(second, tensor), strict=True
        ):
            sums.add(values, other)
        figures = sums.figures()
        if figures is not None and figures.snr_db is not None:
            yield figures.snr_db
