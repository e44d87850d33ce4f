"""The inputs that repairs are fitted with, as the two networks take them.

A model that is run frame by frame is fitted with single steps of clips: some of the frames, each
with the state that the original has there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.query import Arm
from edgeflare.core.tensor import dequantize, pack_rows, quantize, unpack_rows
from edgeflare.diagnose.near_boundary import mixtures
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import HostProbe, Values
from edgeflare.models.original import invocation_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.onnx_network import is_onnx, network_rows
from edgeflare.repair.fitting.quantized_network import FurtherInputs, QuantizedNetwork, Rows
from edgeflare.repair.fitting.tensor_capture import answered
from edgeflare.repair.judging.judgement_inputs import MIXED, WIDE, SeedSplit, line_inputs

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them of lines between two. The time and
the memory that fitting takes grow with them."""

_FIT_VALUES = 2**24
"""Values that these have at most, all together: pictures of 256 x 256 are 85."""

_COMPARED = 8
"""Inputs on which an ONNX model is compared with its network in the compressed graph."""

_FIT_CLIPS = 100
"""Clips of which steps are taken at most."""

_FIT_STEPS = 8
"""Steps of a clip at most, drawn from all."""


def fit_inputs(
    opened: OpenedPair, labels: NDArray[np.int64], split: SeedSplit, rng: np.random.Generator
) -> tuple[NDArray[Any], list[int]]:
    """Return seeds to fit with and inputs of lines between them, and their seeds' ids.

    Where decisions have borders, the latter are near those of the original. They are drawn whatever
    the method, so that all methods are judged by the same inputs.

    Args:
        opened: the pair.
        labels: labels of all its seeds, as `known_labels` returns them.
        split: the parts of the seeds.
        rng: the generator of all that is drawn.

    Returns:
        inputs: (n, *shape), of the pair's domain.
        ids: the n ids of their seeds.

    """
    seeds = opened.seeds.inputs[split.fit]
    half = max(1, min(FIT_INPUTS, _FIT_VALUES // seeds[0].size) // 2)
    some = np.sort(rng.permutation(len(seeds))[:half])
    sets = line_inputs(opened, labels, split.fit, 2 * (half // 2) or 2, rng)
    near, of = sets[WIDE] if WIDE in sets else sets[MIXED]
    ids = np.array(opened.seeds.seed_ids, np.int64)
    fitted = np.concatenate([seeds[some], near])
    return fitted, ids[np.concatenate([split.fit[some], of])].tolist()


def further_inputs(
    opened: OpenedPair,
    original: bytes,
    labels: NDArray[np.int64],
    split: SeedSplit,
    rng_seed: int,
) -> FurtherInputs | None:
    """Return what draws more inputs to fit with than `fit_inputs`; None where inputs are clips.

    Where decisions have borders, two thirds are near those of the original, one sixth are drawn
    evenly from lines between two seeds, and the rest are seeds; else five sixths are from lines.

    Args: as of `fit_inputs` and `network_to_fit`, and the seed of the generator of these inputs.

    """
    if opened.pair.interface.invocation.frames:
        return None
    seeds, space = opened.seeds.inputs[split.fit], opened.pair.interface.domain.space

    @cache
    def drawn(wanted: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng(rng_seed)
        sixth = max(1, min(wanted, _FIT_VALUES // seeds[0].size) // 6)
        sets = line_inputs(opened, labels, split.fit, 4 * sixth, rng)
        near, of = sets[WIDE] if WIDE in sets else sets[MIXED]
        mixed, begun = mixtures(seeds, sixth, rng, space)
        some = rng.permutation(len(seeds))[:sixth]
        inputs = np.concatenate([near, mixed, seeds[some]])
        made_from = np.concatenate([of, split.fit[begun], split.fit[some]])
        ids = np.array(opened.seeds.seed_ids, np.int64)[made_from]
        order = rng.permutation(len(ids))  # so that the first of them are of all kinds
        return _encoded(opened, original, inputs[order], ids[order].tolist())

    return drawn


def network_to_fit(
    opened: OpenedPair,
    original: bytes,
    inputs: NDArray[Any],
    ids: Sequence[int],
    rng: np.random.Generator,
) -> QuantizedNetwork:
    """Return the network to fit, with the inputs to fit it with.

    Args:
        opened: the pair.
        original: the original's `.tflite` file.
        inputs: (n, *shape), as `fit_inputs` returns them.
        ids: the seed that each was made from.
        rng: draws the steps of clips.

    Raises:
        UserError: the original does not run, or it is an ONNX model whose tensors cannot be told.

    """
    interface = opened.pair.interface
    if interface.invocation.frames:
        some = np.sort(rng.permutation(len(inputs))[:_FIT_CLIPS])
        inputs, ids = inputs[some], [ids[at] for at in some.tolist()]
    rows, original_rows = _encoded(opened, original, inputs, ids)
    content = read_model_file(opened.pair.compressed)
    network = QuantizedNetwork(content, original, rows, original_rows, interface.task)
    return _of_steps(opened, network, rng) if interface.invocation.frames else network


def _encoded(
    opened: OpenedPair, original: bytes, inputs: NDArray[Any], ids: Sequence[int]
) -> tuple[Rows, Rows]:
    """Return inputs as the compressed model takes them, and as the original's network does."""
    rows, original_rows = (opened.panel.rows(arm, inputs, ids) for arm in (Arm.TWIN, Arm.ORIGINAL))
    path = Path(str(opened.pair.original))
    if is_onnx(path):
        evaluator = opened.panel.host(Arm.ORIGINAL).evaluator
        outputs = evaluator.submit(original_rows[:_COMPARED]).result().outputs
        original_rows = network_rows(path, original, original_rows, outputs)
    return rows, original_rows


def _of_steps(
    opened: OpenedPair, network: QuantizedNetwork, rng: np.random.Generator
) -> QuantizedNetwork:
    """Return a network whose rows are clips with those of single steps, and states beside them."""
    pair = opened.pair
    called = pair.interface.invocation
    theirs = invocation_of(called, Path(str(pair.original)), pair.compressed)
    ours = _Clips.of(opened, Arm.TWIN, network.graph, network.rows, called)
    original = _Clips.of(
        opened, Arm.ORIGINAL, network.original_graph, network.original_rows, theirs
    )
    count = min(_FIT_STEPS, called.frames)
    steps = [np.sort(rng.permutation(called.frames)[:count]) for _ in network.rows]
    given, original_given = [], []
    with closing(HostProbe(network.original, "builtin")) as probe:
        for clip, chosen in enumerate(steps):
            states = original.no_states
            for frame in range(int(chosen[-1]) + 1):
                values = original.given(clip, frame, states)
                if frame in chosen:
                    original_given.append(values)
                    given.append(ours.given(clip, frame, states))
                if states:
                    states = original.next_states(probe, values)
    return QuantizedNetwork(
        network.content,
        network.original,
        _packed(network.graph, given),
        _packed(network.original_graph, original_given),
        network.task,
        frozenset(made for _, made in ours.states),
    )


@dataclass(frozen=True, slots=True)
class _Clips:
    """The frames of clips, as one of the two networks takes them.

    Attributes:
        graph: graph of the network.
        frames: what inputs are given that no state feeds, (clips, frames, *shape), by tensor.
        states: tensors of the inputs that a state feeds, each with the output that it is.

    """

    graph: Graph
    frames: Mapping[int, Values]
    states: Sequence[tuple[int, int]]

    @classmethod
    def of(
        cls,
        opened: OpenedPair,
        arm: Arm,
        graph: Graph,
        rows: NDArray[np.generic],
        called: Invocation,
    ) -> _Clips:
        """Return the clips in the rows of an arm."""
        states = [
            (_named(graph, graph.inputs, fed), _named(graph, graph.outputs, made))
            for fed, made in called.state.items()
        ]
        free = [input_ for input_ in graph.inputs if input_ not in dict(states)]
        arrays = unpack_rows(opened.panel.host(arm).evaluator.signature.inputs, rows)
        return cls(graph, dict(zip(free, arrays, strict=True)), states)

    @property
    def no_states(self) -> list[Values]:
        """The states before the first frame, as real values."""
        return [np.zeros(self.graph.tensors[fed].shape, np.float32) for fed, _ in self.states]

    def given(self, clip: int, frame: int, states: Sequence[Values]) -> dict[int, Values]:
        """Return what the network is given at a step, by the tensor.

        Args:
            clip: position of the clip.
            frame: position of the frame.
            states: real values of the states, in their order.

        """
        values: dict[int, Values] = {
            tensor: rows[clip, frame] for tensor, rows in self.frames.items()
        }
        for (fed, _), state in zip(self.states, states, strict=True):
            known = self.graph.tensors[fed].as_interface
            values[fed] = quantize(state.reshape(known.shape).astype(np.float32), known)
        return values

    def next_states(self, probe: HostProbe, values: Mapping[int, Values]) -> list[Values]:
        """Return the states behind a step, as real values."""
        given = [values[tensor].reshape(self.graph.tensors[tensor].shape) for tensor in probe.given]
        made = answered(probe, given, "the original gave no answer on a step")
        found = dict(zip(probe.made, made, strict=True))
        tensors = self.graph.tensors
        return [dequantize(found[made], tensors[made].as_interface) for _, made in self.states]


def _named(graph: Graph, tensors: Sequence[int], name: str) -> int:
    for tensor in tensors:
        if graph.tensors[tensor].name == name:
            return tensor
    raise UserError(f"{graph.source} has no {name} among the ends of its first graph")


def _packed(graph: Graph, steps: Sequence[Mapping[int, Values]]) -> NDArray[np.generic]:
    tensors = [graph.tensors[input_].as_interface for input_ in graph.inputs]
    arrays = [
        np.stack([step[input_].reshape(known.shape) for step in steps])
        for input_, known in zip(graph.inputs, tensors, strict=True)
    ]
    return pack_rows(tensors, arrays)
