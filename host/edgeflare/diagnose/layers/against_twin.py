"""The layers of a device against those of the twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from edgeflare.diagnose.layered_models import LayeredModel
from edgeflare.diagnose.layers.layer_figures import (
    ErrorSums,
    LayerFigures,
    output_step,
)
from edgeflare.diagnose.probed_arm import OpenProbe, ProbedArm, State
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import isolate
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph, GraphOp


class AgainstTwin:
    """The layers of the device against those of the twin, input by input.

    Args:
        compressed: the compressed model.
        device: runs it.

    """

    def __init__(self, compressed: LayeredModel, device: DeviceSide) -> None:
        self._graph = graph = compressed.graph
        self._arm = ProbedArm(graph, compressed.content, device.opens)
        self._parts = [
            isolate(graph, group) for group in operators_together(graph, device.payload_limit)
        ]
        steps = {one.index: output_step(graph, one) for one in graph.layers}
        self._entire_sums = {op: ErrorSums(step) for op, step in steps.items()}
        self._single_sums = {op: ErrorSums(step) for op, step in steps.items()}
        self._captures = True

    def close(self) -> None:
        """Close all that was opened."""
        self._arm.close()

    def add(
        self, twin_arm: ProbedArm, encoded: Values, twin: State, notes: dict[str, None]
    ) -> None:
        """Look into an input.

        Args:
            twin_arm: the twin.
            encoded: the input as the model takes it.
            twin: the tensors of the twin, as they were observed.
            notes: takes what could not be seen, each a sentence without its full stop.

        Raises:
            InfrastructureError: the device or a worker process is lost.

        """
        if self._captures:
            self._add_entire(encoded, twin, notes)
        for part in self._parts:
            if any(tensor not in twin for tensor in part.inputs):
                continue
            try:
                wanted = twin_arm.run_part(part, twin, keep=True)
                got = self._arm.run_part(part, twin, keep=True)
            except (ProbeFailed, UserError) as failed:
                notes[f"some operators do not run by themselves: {failed}"] = None
                continue
            self._count(self._single_sums, wanted, got)

    def completed(self, known: LayerFigures, one: GraphOp) -> LayerFigures:
        """Return the figures of a layer with those that were found here."""
        return replace(
            known,
            device_entire=self._entire_sums[one.index].figures(),
            device_single=self._single_sums[one.index].figures(),
        )

    def _add_entire(self, encoded: Values, twin: State, notes: dict[str, None]) -> None:
        try:
            seen = self._arm.observe([encoded], self._arm.outputs([encoded]))
        except (ProbeFailed, UserError) as failed:
            notes[f"the device gives no answer: {failed}"] = None
            return
        self._captures = seen.method == "capture"
        if self._captures:
            self._count(self._entire_sums, twin, seen.state)
        else:
            notes["the device captures no tensors, so its layers are compared one by one"] = None

    def _count(self, sums: Mapping[int, ErrorSums], wanted: State, got: State) -> None:
        for tensor in wanted.keys() & got.keys():
            op = self._graph.made_by.get(tensor)
            if op is not None and tensor == self._graph.operators[op].outputs[0]:
                known = self._graph.tensors[tensor]
                sums[op].add(known.real(wanted[tensor]), known.real(got[tensor]))


@dataclass(frozen=True, slots=True)
class DeviceSide:
    """The device that runs the compressed model.

    Attributes:
        opens: opens models there; its second argument is true to capture tensors.
        payload_limit: the most bytes that one input may have.

    """

    opens: OpenProbe
    payload_limit: int


def operators_together(graph: Graph, payload_limit: int) -> Iterator[tuple[int, ...]]:
    """Yield groups of operators whose inputs fit one message; those that fit none are left out."""
    group: list[int] = []
    room = payload_limit
    for one in graph.layers:
        fed = graph.fed(one)
        if graph.unreadable(one) or not fed:
            continue
        size = sum(graph.tensors[tensor].nbytes for tensor in fed)
        if size > payload_limit:
            continue
        if size > room:
            yield tuple(group)
            group, room = [], payload_limit
        group.append(one.index)
        room -= size
    if group:
        yield tuple(group)
