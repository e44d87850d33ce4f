"""The layers of a device against those of the twin.

An accelerator fuses neighbours, or lets a tensor share the memory of another one. Then each
operator by itself is right, and the fault begins where two of them are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Final

import numpy as np

from edgeflare.diagnose.arm_probe import OpenProbe, ProbedArm, State
from edgeflare.diagnose.layer_difference import any_parted, layer_name
from edgeflare.diagnose.layer_graphs import LayeredModel
from edgeflare.diagnose.layers.layer_figures import (
    ComparisonNotes,
    ErrorSums,
    LayerFigures,
    error_sums,
    listed,
)
from edgeflare.diagnose.layers.layers_document import differs_on_device
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, extract, isolate
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph, GraphOp

_KEPT: Final = 2
"""Parts that stay open on the device from one input to the next. An agent keeps eight models open,
and the whole one is there in up to three forms, beside those of who asks."""

_LONGEST: Final = 4
"""Operators from one to the one that reads it, both included, with what runs between them."""

_MOST_PARTS: Final = 120
"""Parts that are tried: a network of as many layers has about as many neighbours."""

WHOLE_DB: Final = 10.0
"""SQNR in decibels of a whole model's output below which roundings that add up are no reason."""

_JOINED_DB: Final = 20.0
"""SQNR in decibels of a few operators, one after the other, below which roundings are no reason."""


class DeviceComparison:
    """The layers of the device against those of the twin, input by input.

    Args:
        compressed: the compressed model.
        device: runs it.
        notes: takes what cannot be seen.

    Attributes:
        outputs_differ: how many inputs the whole model gives another output on than the twin.
        together: two operators that are right by themselves and wrong together; empty where the
            whole model is not far off, or an operator by itself is to blame, or none are known.

    """

    def __init__(
        self, compressed: LayeredModel, device: DeviceSide, notes: ComparisonNotes
    ) -> None:
        self._graph = graph = compressed.graph
        self._notes = notes
        self._arm = ProbedArm(graph, compressed.content, device.opens)
        self._groups = list(operators_together(graph, device.payload_limit))
        self._parts: dict[tuple[int, ...], Part] = {}
        left_out = {layer.index for layer in graph.layers if layer.outputs}.difference(
            *self._groups
        )
        if left_out:
            notes.add("alone", f"not run by themselves: {_named(graph, sorted(left_out))}")
        self._entire_sums, self._single_sums = error_sums(graph), error_sums(graph)
        self._captures = True
        self.outputs_differ = 0
        self.together: tuple[int, ...] = ()
        self._looked_together = False

    def close(self) -> None:
        """Close all that was opened."""
        self._arm.close()

    def add(
        self, twin_arm: ProbedArm, encoded: Values, twin: State, stopped: Callable[[], bool]
    ) -> None:
        """Look into an input.

        Args:
            twin_arm: the twin.
            encoded: the input as the model takes it.
            twin: the tensors of the twin, as they were observed, its outputs among them.
            stopped: whether to look for no operators that are wrong together any longer.

        """
        differs, far = self._add_whole(encoded, twin)
        waiting, tried = self._groups, list[tuple[int, ...]]()
        while waiting:
            group, *waiting = waiting
            if refused := self._add_single(group, twin_arm, twin):
                if len(group) > 1:  # one operator alone is refused, and the others with it
                    waiting = [*((layer,) for layer in group), *waiting]
                else:
                    named = _named(self._graph, group)
                    self._notes.add(f"alone {group}", f"{named} does not run by itself: {refused}")
            else:
                tried.append(group)
        self._groups = tried
        if far and not self._looked_together and not self._wrong_alone():
            self._looked_together = True
            self.together = wrong_together(self._graph, twin_arm, self._arm, twin, stopped)
        self.outputs_differ += differs  # of an input on which the device is not lost

    def _wrong_alone(self) -> bool:
        """Whether an operator by itself is computed otherwise, as far as is known."""
        return any(
            differs_on_device(
                self.completed(LayerFigures(layer=layer_name(self._graph, layer)), layer)
            )
            for layer in self._graph.layers
        )

    def _add_single(self, group: tuple[int, ...], twin_arm: ProbedArm, twin: State) -> str:
        """Compare operators by themselves; return why they do not run so, empty where they do."""
        if group not in self._parts:
            self._parts[group] = isolate(self._graph, group)
        part = self._parts[group]
        if any(tensor not in twin for tensor in part.inputs):
            return ""
        try:
            wanted = twin_arm.run_part(part, twin, keep=True)
            kept = list(self._parts).index(group) < _KEPT
            got = self._arm.run_part(part, twin, keep=kept)
        except (ProbeFailed, UserError) as failed:
            return str(failed)
        self._count(self._single_sums, wanted, got)
        return ""

    def completed(self, known: LayerFigures, operator: GraphOp) -> LayerFigures:
        """Return the figures of a layer with those that were found here."""
        return replace(
            known,
            device_entire=self._entire_sums[operator.index].figures(),
            device_single=self._single_sums[operator.index].figures(),
        )

    def _add_whole(self, encoded: Values, twin: State) -> tuple[bool, bool]:
        """Compare what the whole model gives, and its tensors where they are captured.

        Returns:
            Whether an output differs, and whether it is farther off than roundings explain.

        """
        differs = far = False
        try:
            outputs = self._arm.outputs([encoded])
            differs = any_parted(self._graph, twin, outputs)
            far = far_apart(self._graph, twin, outputs, WHOLE_DB)
            if not self._captures:
                return differs, far
            seen = self._arm.observe([encoded], outputs)
        except (ProbeFailed, UserError) as failed:
            self._notes.add("device", f"the device gives no answer: {failed}")
            return differs, far
        if seen.method == "capture":
            self._count(self._entire_sums, twin, seen.state)
        elif seen.perturbation is None:
            self._captures = False
            self._notes.add(
                "capture", "the device captures no tensors: its layers are compared one by one"
            )
        return differs, far

    def _count(self, sums: Mapping[int, ErrorSums], wanted: State, got: State) -> None:
        """Count all that operators put out in the steps of the first output, such as a SPLIT's."""
        tensors = self._graph.tensors
        for layer in self._graph.layers:
            alike = [
                tensor
                for tensor in layer.outputs
                if tensor in wanted and tensor in got
                if tensors[tensor].scales == tensors[layer.outputs[0]].scales
                and tensors[tensor].dtype == tensors[layer.outputs[0]].dtype
            ]
            if alike:
                sums[layer.index].add(
                    *(
                        np.concatenate([tensors[at].real(of[at]).ravel() for at in alike])
                        for of in (wanted, got)
                    )
                )


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
    """Yield groups of operators whose inputs fit one message; those that fit none are left out.

    So are those that are told a shape or places by another operator: by themselves they would be
    told them at run time, which some runtimes take otherwise.
    """
    group: list[int] = []
    room = payload_limit
    for layer in graph.layers:
        fed = graph.fed(layer)
        told = any(not graph.tensors[tensor].has_values for tensor in fed[1:])
        if graph.unreadable(layer) or not fed or told:
            continue
        size = sum(graph.tensors[tensor].nbytes for tensor in fed)
        if size > payload_limit:
            continue
        if size > room:
            yield tuple(group)
            group, room = [], payload_limit
        group.append(layer.index)
        room -= size
    if group:
        yield tuple(group)


def _named(graph: Graph, operators: Sequence[int]) -> str:
    return listed(str(layer_name(graph, graph.operators[op])) for op in operators)


def wrong_together(
    graph: Graph,
    twin: ProbedArm,
    device: ProbedArm,
    state: State,
    stopped: Callable[[], bool],
) -> tuple[int, ...]:
    """Return two operators, one fed by the other, that are wrong together; none where none are.

    Args:
        graph: graph of the model.
        twin: the model on the host.
        device: the model on the device.
        state: the tensors of the twin on an input.
        stopped: whether to come to an end.

    """
    parts = islice(_neighbours(graph), _MOST_PARTS)
    for first, last in takewhile(lambda _: not stopped(), parts):
        try:
            part = extract(graph, first, last)
            if any(tensor not in state for tensor in part.inputs):
                continue
            wanted = twin.run_part(part, state, keep=False)
            got = device.run_part(part, state, keep=False)
        except (ProbeFailed, UserError):
            continue
        if far_apart(graph, wanted, got, _JOINED_DB):
            return first, last
    return ()


def far_apart(graph: Graph, wanted: State, got: State, least_db: float) -> bool:
    """Whether a tensor that both have has less signal to noise, or is not finite in one alone."""
    for tensor in wanted.keys() & got.keys():
        known, sums = graph.tensors[tensor], ErrorSums()
        sums.add(known.real(wanted[tensor]), known.real(got[tensor]))
        figures = sums.figures()
        if figures is not None and (
            figures.not_finite or (figures.snr_db is not None and figures.snr_db < least_db)
        ):
            return True
    return False


def _neighbours(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield positions of operators of which the second reads the first, the nearest first."""
    layers = [layer.index for layer in graph.layers]
    place = {index: at for at, index in enumerate(layers)}
    pairs = {
        (place[maker], place[layer.index])
        for layer in graph.layers
        for tensor in graph.fed(layer)
        if (maker := graph.made_by.get(tensor)) in place
    }
    for first, last in sorted(pairs, key=lambda ends: (ends[1] - ends[0], ends)):
        if last - first < _LONGEST:
            yield layers[first], layers[last]
