"""Activations that are given a quantization of their own, where an operator tied them to others.

The format wants an AVERAGE_POOL_2D to put out what it reads in the same steps. The means of a whole
picture span far less than its values, so few of the steps are left for them; a MEAN computes the
same in integers, and may have a quantization of its own. What operators such as CONCATENATION put
side by side has to have one quantization too. A tensor that is read elsewhere besides gets its own,
and a QUANTIZE in front of the joining operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgeflare.diagnose.layer_difference import layer_name
from edgeflare.diagnose.tensor_ties import (
    JOINING,
    consumers,
    joined_by,
    moves_values,
    pools_all,
    tied_tensors,
)
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.candidate_details import CandidateDetails, Rewrite, RewriteDetails
from edgeflare.repair.fitting.activation_ranges import fit_groups
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import CandidatePlan, Effort, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import IN_PLACE, FitChains, RepairMethod

_NARROWER = 0.7
"""A step of its own is kept where it is at most so much of the one before."""


class Rewrites(RepairMethod):
    """Rewrites operators that force one step on unlike values; see `give_own_steps`."""

    integers = True

    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> OwnSteps:
        """Return what is rewritten."""
        return give_own_steps(network, progress)

    def write(self, network: QuantizedNetwork, fitted: OwnSteps) -> bytes:
        """Return the rewritten file."""
        del network
        return fitted.content

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return one plan, since all of its candidates are of the same rewrites."""

        def make(progress: StepProgress) -> Sequence[RepairCandidate]:
            details = rewrite_details(chains.fitted((name,), progress))
            behind = (), IN_PLACE[:1], IN_PLACE, chains.farthest(progress)[1:]
            return [
                chains.candidate((name, *some), progress, details) for some in dict.fromkeys(behind)
            ]

        return (CandidatePlan(name, name, make, Effort.FIRST),)


def rewrite_details(own: OwnSteps) -> CandidateDetails:
    """Return what rewrites say of a candidate."""
    return CandidateDetails(rewrites=RewriteDetails(rewrites=own.rewrites))


@dataclass(frozen=True, slots=True)
class OwnSteps:
    """A compressed model with activations that have steps of their own.

    Attributes:
        content: the `.tflite` file.
        rewrites: what was rewritten, in execution order.

    """

    content: bytes
    rewrites: tuple[Rewrite, ...]


def give_own_steps(network: QuantizedNetwork, progress: Callable[[int, int], None]) -> OwnSteps:
    """Rewrite operators that force one step on unlike values, where finer ones are to be had.

    Args:
        network: has at least one input to fit with.
        progress: is told how many inputs the original has evaluated and how many ranges are
            fitted, and of how many.

    """
    places = [place for place in _places(network.graph) if _is_int8(network.graph, place.tensor)]
    if places:
        fitted = _fitted(network, places, progress)
        kept = [place for place in places if _narrower(network.graph, fitted.graph, place)]
        if len(kept) < len(places):
            fitted = _fitted(network, kept, progress)
        if kept:
            return OwnSteps(fitted.content, tuple(_said(network.graph, fitted.graph, kept)))
    raise UserError("no operator of the model forces a step on values that would have finer ones")


@dataclass(frozen=True, slots=True)
class _Place:
    """What can be rewritten.

    Attributes:
        operator: position of the operator to blame in the compressed model.
        tensor: the activation that may have steps of its own.
        readers: positions of the operators that read it in the steps that it has now.

    """

    operator: int
    tensor: int
    readers: tuple[int, ...] = ()


def _is_int8(graph: Graph, tensor: int) -> bool:
    """Whether a tensor has steps: whole numbers that stand for themselves have none."""
    known = graph.tensors[tensor]
    return known.dtype == "int8" and len(known.scales) == 1


def _places(graph: Graph) -> Iterator[_Place]:
    for layer in graph.layers:
        if pools_all(graph, layer):
            yield _Place(layer.index, layer.outputs[0])
        elif not moves_values(layer):
            yield from _joined(graph, layer)


def _joined(graph: Graph, one: GraphOp) -> Iterator[_Place]:
    """Yield an operator's output where it is joined with others, and read elsewhere besides."""
    for tensor in one.outputs[:1]:
        readers = consumers(graph, tensor)
        joining = [reader for reader in readers if _leads_to_a_join(graph, reader)]
        if 0 < len(joining) < len(readers):
            join = next(joined_by(graph, tensor))
            yield _Place(join.index, tensor, tuple(reader.index for reader in joining))


def _leads_to_a_join(graph: Graph, one: GraphOp) -> bool:
    return one.name in JOINING or (
        moves_values(one) and any(True for made in one.outputs for _ in joined_by(graph, made))
    )


def _fitted(
    network: QuantizedNetwork, places: Sequence[_Place], progress: Callable[[int, int], None]
) -> QuantizedNetwork:
    """Return the network with places rewritten, and the ranges of their tensors fitted."""
    if not places:
        return network
    network = network.with_content(_rewritten(network.content, network.graph, places))
    freed = {place.tensor for place in places}
    groups = [tied for tied in tied_tensors(network.graph) if freed & set(tied.tensors)]
    return network.with_content(fit_groups(network, groups, progress))


def _rewritten(content: bytes, graph: Graph, places: Sequence[_Place]) -> bytes:
    """Return the file with operators that tie nothing, and each quantization as it was."""
    writer = Writer(content)
    operators = writer.graph.operators
    by_position = list(operators)
    for place in places:
        if place.readers:
            known = graph.tensors[place.tensor]
            like = replace(known.as_interface, name=f"{known.name}/joined")
            joined = writer.operator("QUANTIZE", [place.tensor], writer.tensor(like), version=2)
            operators.insert(operators.index(by_position[place.readers[0]]), operators.pop())
            for reader in place.readers:
                its = by_position[reader]
                its.inputs = [joined if int(at) == place.tensor else int(at) for at in its.inputs]
        else:
            axes = writer.constant(f"axes of {place.operator}", np.array([1, 2], np.int32))
            given = graph.operators[place.operator].inputs[0]
            writer.operator("MEAN", [given, axes], place.tensor, version=2, keepDims=True)
            operators[operators.index(by_position[place.operator])] = operators.pop()
    return writer.content()


def _narrower(before: Graph, after: Graph, one: _Place) -> bool:
    known, now = (graph.tensors[one.tensor].scales[0] for graph in (before, after))
    return now <= _NARROWER * known


def _said(before: Graph, after: Graph, places: Sequence[_Place]) -> Iterator[Rewrite]:
    for place in places:
        yield Rewrite(
            operator=str(layer_name(before, before.operators[place.operator])),
            by="QUANTIZE" if place.readers else "MEAN",
            tensor=before.tensors[place.tensor].name,
            step_before=before.tensors[place.tensor].scales[0],
            step_after=after.tensors[place.tensor].scales[0],
        )
