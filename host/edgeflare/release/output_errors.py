"""How far the outputs of a model are apart, those too that its task does not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import Tensor, dequantize, unpack_rows, without_ones
from edgeflare.diagnose.layers.layer_figures import ErrorSums, LayerError
from edgeflare.release.answers import Answers
from edgeflare.release.figures.device_figures import OutputFigures
from edgeflare.tasks.output_choice import is_numeric

_MOST: Final = 64
"""Inputs whose outputs are held against each other."""

_Places: TypeAlias = Mapping[Arm, int]
"""Where an output stands in the rows of each arm that has it."""


def output_figures(answers: Answers) -> tuple[OutputFigures, ...]:
    """Return how far the outputs are apart on the first inputs, those first that are read."""
    decoders = answers.opened.panel.reading.decoders
    twin = decoders[Arm.TWIN]
    known = [*_read(decoders), *_unread(answers)]
    real = {
        arm: _real(answers, arm, [places[arm] for places in known if arm in places])
        for arm in answers.opened.panel.arms
    }
    return tuple(
        OutputFigures(
            output=twin.outputs[places[Arm.TWIN]].name,
            read=places[Arm.TWIN] in twin.read_at,
            compression=_error(real, Arm.ORIGINAL, Arm.TWIN, places, twin),
            kernels=_error(real, Arm.TWIN, Arm.DEVICE, places, twin),
        )
        for places in known
    )


def _read(decoders: Mapping[Arm, Decoder]) -> Iterator[_Places]:
    """Yield the outputs that the task reads, of each arm in the order in which it does."""
    for at in range(len(decoders[Arm.TWIN].read_at)):
        yield {arm: its.read_at[at] for arm, its in decoders.items() if at < len(its.read_at)}


def _unread(answers: Answers) -> Iterator[_Places]:
    """Yield the further outputs of numbers that are no state."""
    opened = answers.opened
    interface, decoders = opened.pair.interface, opened.panel.reading.decoders
    sides = (interface, interface.on_device)
    if any(its.post_processing is not None or its.opened_task.reads_inputs for its in sides):
        return  # rows are not those of the model's own outputs
    twin, original = decoders[Arm.TWIN], decoders.get(Arm.ORIGINAL)
    states = interface.invocation.state.values()
    for at, tensor in enumerate(twin.outputs):
        if at in twin.read_at or tensor.name in states or not is_numeric(tensor):
            continue
        same = {arm: at for arm in (Arm.TWIN, Arm.DEVICE) if arm in decoders}
        there = None if original is None else _counterpart(tensor, twin, original)
        yield same if there is None else {Arm.ORIGINAL: there, **same}


def _counterpart(tensor: Tensor, twin: Decoder, original: Decoder) -> int | None:
    """Return where the original has an output: by its name, else by a shape that no other has."""
    free = {at: its for at, its in enumerate(original.outputs) if at not in original.read_at}
    alike = [at for at, its in free.items() if _shaped_alike(its, tensor)]
    named = [at for at in alike if free[at].name == tensor.name]
    alone = sum(_shaped_alike(its, tensor) for its in twin.outputs) == 1 == len(alike)
    return next(iter(named or (alike if alone else ())), None)


def _shaped_alike(one: Tensor, other: Tensor) -> bool:
    return without_ones(one.shape) == without_ones(other.shape)


_Values: TypeAlias = Mapping[int, NDArray[np.float64]]
"""Real values of outputs by their places."""


def _real(answers: Answers, arm: Arm, places: Sequence[int]) -> list[_Values | None]:
    """Ask an arm once more: what is kept of its outputs may be what decisions need alone.

    Returns:
        Of each input the real values of its outputs; None where the arm failed.

    """
    opened = answers.opened
    ids, inputs = answers.seed_ids[:_MOST], list(answers.places[:_MOST])
    model = opened.panel.device_of(ids[0]) if arm is Arm.DEVICE else opened.panel.host(arm)
    batch = model.submit(model.given(opened.seeds.inputs[inputs], ids)).result()
    tensors = model.decoder.outputs
    values = unpack_rows(tensors, batch.outputs)
    real = {place: dequantize(values[place], tensors[place]) for place in places}
    return [
        None if at in batch.failures else {place: output[at] for place, output in real.items()}
        for at in range(len(inputs))
    ]


def _error(
    real: Mapping[Arm, list[_Values | None]],
    first: Arm,
    second: Arm,
    places: _Places,
    twin: Decoder,
) -> LayerError | None:
    if first not in real or first not in places:
        return None
    sums = ErrorSums(twin.outputs[places[Arm.TWIN]].scale or None)
    for wanted, got in zip(real[first], real[second], strict=True):
        if wanted is None or got is None:
            continue
        one, other = wanted[places[first]], got[places[second]]
        if one.size == other.size:
            sums.add(one.ravel(), other.ravel())
    return sums.figures()
