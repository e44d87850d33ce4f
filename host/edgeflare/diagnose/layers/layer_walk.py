"""The layers of a pair, looked into on one input after the other.

*Entire* is how far a layer's output is off in the network, where the errors of all layers before
add up. *Single* is how far it is off where the operator is given what the original's layers before
put out, rounded to what it reads. The *sensitivity* of a layer is by how much the margin of the
original's decision changes where that output, and nothing else, stands in the original's place.

A device is held against the twin: entire where its runtime captures all tensors, single where both
run each operator by itself, given the same. What an accelerator shows of its inner tensors in other
ways is not what it computes with, also where the model's output is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.diagnose.constant_error import ConstantError, compare_constants
from edgeflare.diagnose.layer_difference import LayerName, layer_name
from edgeflare.diagnose.layer_matching import MatchedBy, match_layers
from edgeflare.diagnose.layered_models import LayeredModel
from edgeflare.diagnose.layers.layer_figures import ErrorSums, LayerError, RangeSums, RangeUse
from edgeflare.diagnose.margin_error import answers_behind
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.output_stage import ModelReader
from edgeflare.diagnose.probed_arm import OpenProbe, ProbedArm, State
from edgeflare.diagnose.quantized_places import counterparts
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, isolate
from edgeflare.models.model_probe import ProbeFailed, Values
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.record.json_types import Amount, Count


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What a layer alone does to the original's decisions, if it is computed as the twin does.

    Attributes:
        inputs: that it was measured on.
        margin: mean over them of by how much the decision's margin changes, in scores; of values,
            of the distance.
        changed: of these inputs, those whose decision changes.

    """

    inputs: Count
    margin: float
    changed: Count


@dataclass(frozen=True, slots=True)
class LayerConstants:
    """How far the constants of a layer are off from the original's, whatever the input.

    Attributes:
        steps: the largest error of weights or bias in steps of its own; null where the compressed
            model's alone are not finite.
        explained: how large an error rounding explains, in the same steps.
        overflows: whether the type of the constant cannot hold the original's value, so that it
            wrapped around or was cut off.

    """

    steps: Amount | None
    explained: Amount
    overflows: bool

    @property
    def beyond(self) -> bool:
        """Whether they are off by more than rounding explains."""
        return self.steps is None or self.steps > self.explained


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFigures:
    """What is known of a layer of the compressed model.

    Attributes:
        layer: which it is.
        original: position of the original's operator that it was made from; null where that is not
            known.
        matched_by: what told that; null likewise.
        constants: how far its constants are off; null where none can be compared.
        entire: original against twin, with the errors of the layers before.
        single: original against twin, given what the original's layers before put out.
        range: how its range goes with the original's values; null where it has none.
        sensitivity: what it does to the margin by itself; null where that was not measured.
        device_entire: twin against device, with the differences of the layers before; null without
            a device that captures.
        device_single: twin against device, given the same.

    """

    layer: LayerName
    original: Count | None = None
    matched_by: MatchedBy | None = None
    constants: LayerConstants | None = None
    entire: LayerError | None = None
    single: LayerError | None = None
    range: RangeUse | None = None
    sensitivity: Sensitivity | None = None
    device_entire: LayerError | None = None
    device_single: LayerError | None = None


@dataclass(frozen=True, slots=True)
class OriginalSide:
    """The original that the layers of the compressed model are held against.

    Attributes:
        model: the original.
        reader: reads answers from its outputs.

    """

    model: LayeredModel
    reader: ModelReader


@dataclass(frozen=True, slots=True)
class DeviceSide:
    """The device that runs the compressed model.

    Attributes:
        opens: opens models there; its second argument is true to capture tensors.
        payload_limit: the most bytes that one input may have.

    """

    opens: OpenProbe
    payload_limit: int


class LayerWalk:
    """Looks into the layers of a pair, input by input.

    Args:
        compressed: the compressed model.
        twin: opens models on the host, with the twin's kernels; its second argument is true to
            capture tensors.
        original: None where there is none whose layers can be seen.
        device: None where none is asked.

    Attributes:
        notes: what could not be seen, each a sentence without its full stop.

    """

    def __init__(
        self,
        compressed: LayeredModel,
        twin: OpenProbe,
        original: OriginalSide | None,
        device: DeviceSide | None,
    ) -> None:
        self._graph = compressed.graph
        self._twin = ProbedArm(compressed.graph, compressed.content, twin)
        self._against = None if original is None else _AgainstOriginal(self._graph, original, twin)
        self._device = None
        if device is not None:
            self._device = _OnDevice(compressed, device)
        self.notes: dict[str, None] = {}

    def close(self) -> None:
        """Close all that was opened."""
        self._twin.close()
        for side in (self._against, self._device):
            if side is not None:
                side.close()

    def add(self, encoded: Values, original_input: Values | None, *, sensitivity: bool) -> None:
        """Look into an input.

        Args:
            encoded: (1, *input shape without its batch dimension), as the compressed model takes
                it.
            original_input: likewise as the original takes it; None without one.
            sensitivity: whether that is measured on this input.

        Raises:
            InfrastructureError: the device or a worker process is lost.

        """
        try:
            outputs = self._twin.outputs([encoded])
            twin = self._twin.observe([encoded], outputs)
        except (ProbeFailed, UserError) as failed:
            self.notes[f"the twin gives no answer: {failed}"] = None
            return
        if twin.method is None:
            self.notes["the twin's layers cannot be seen"] = None
        if self._against is not None and original_input is not None:
            try:
                self._against.add(self._twin, twin.state, original_input, sensitivity=sensitivity)
            except (ProbeFailed, UserError) as failed:
                self.notes[f"the original's layers cannot be seen: {failed}"] = None
        if self._device is not None:
            self._device.add(self._twin, encoded, twin.state, self.notes)

    @property
    def input_range(self) -> RangeUse | None:
        """How the range of the compressed model's input goes with the original's inputs."""
        return None if self._against is None else self._against.input_range

    def figures(self) -> Iterator[LayerFigures]:
        """Yield what is known of each layer, in execution order."""
        for one in self._graph.layers:
            if not one.outputs or not self._graph.tensors[one.outputs[0]].has_values:
                continue
            known = LayerFigures(layer=layer_name(self._graph, one))
            for side in (self._against, self._device):
                if side is not None:
                    known = side.completed(known, one)
            yield known


class _AgainstOriginal:
    """The layers of the twin against those of the original."""

    def __init__(self, graph: Graph, original: OriginalSide, opens: OpenProbe) -> None:
        self._graph = graph
        self._reader = original.reader
        self._layers = OriginalLayers(original.model.graph, original.model.content, opens)
        self._matched = match_layers(graph, original.model.graph)
        matched = {op: there for op, (there, _) in self._matched.items()}
        self._counterparts = counterparts(graph, original.model.graph, matched)
        self._single = [one for one in graph.layers if self._can_run_alone(one)]
        self._part: Part | None = None
        steps = {one.index: _step(graph, one) for one in graph.layers}
        self._entire_sums = {op: ErrorSums(step) for op, step in steps.items()}
        self._single_sums = {op: ErrorSums(step) for op, step in steps.items()}
        ranges = {one.index: range_of(graph.tensors[one.outputs[0]]) for one in self._shown}
        self._ranges = {op: RangeSums(known) for op, known in ranges.items() if known is not None}
        known = range_of(graph.tensors[graph.inputs[0]])
        self._input_range = None if known is None else RangeSums(known)
        self._constants = {
            op: compare_constants(graph, op, original.model.graph, there)
            for op, there in matched.items()
        }
        self._margins: dict[int, list[tuple[float, bool]]] = {}

    @property
    def _shown(self) -> Iterator[GraphOp]:
        """The layers whose output stands for one of the original's."""
        graph = self._graph
        return (one for one in graph.layers if one.outputs and one.outputs[0] in self._counterparts)

    @property
    def input_range(self) -> RangeUse | None:
        return None if self._input_range is None else self._input_range.figures()

    def close(self) -> None:
        self._layers.close()

    def add(
        self, arm: ProbedArm, twin: State, original_input: Values, *, sensitivity: bool
    ) -> None:
        """Look into an input, of which the twin's tensors were observed."""
        tensors = self._layers.graph.tensors
        seen = self._layers.capture(original_input)
        real = {tensor: tensors[tensor].real(values) for tensor, values in seen.items()}
        if self._input_range is not None:
            self._input_range.add(real[self._layers.graph.inputs[0]])
        for one in self._shown:
            made = one.outputs[0]
            wanted = real.get(self._counterparts[made][0])
            if wanted is None:
                continue
            if made in twin:
                self._entire_sums[one.index].add(wanted, self._real(made, twin))
            if one.index in self._ranges:
                self._ranges[one.index].add(wanted)
        alone = self._alone(arm, real)
        for op, got in alone.items():
            self._single_sums[op].add(real[self._wanted(op)], got)
        if sensitivity:
            self._measure(original_input, real, alone)

    def completed(self, known: LayerFigures, one: GraphOp) -> LayerFigures:
        op, made = one.index, one.outputs[0]
        if made not in self._counterparts:
            return known
        return replace(
            known,
            original=self._counterparts[made][1],
            matched_by=self._matched[op][1] if op in self._matched else "conversion",
            constants=_constants(self._constants.get(op)),
            entire=self._entire_sums[op].figures(),
            single=self._single_sums[op].figures(),
            range=self._ranges[op].figures() if op in self._ranges else None,
            sensitivity=self._sensitivity(op),
        )

    def _sensitivity(self, op: int) -> Sensitivity | None:
        if op not in self._margins:
            return None
        moved, changed = zip(*self._margins[op], strict=True)
        return Sensitivity(len(moved), float(np.mean(moved)), sum(changed))

    def _can_run_alone(self, one: GraphOp) -> bool:
        graph = self._graph
        shown = (*graph.fed(one), *one.outputs[:1])
        return (
            bool(graph.fed(one))
            and not graph.unreadable(one)
            and all(tensor in self._counterparts for tensor in shown)
        )

    def _alone(self, arm: ProbedArm, real: Mapping[int, Real]) -> dict[int, Real]:
        """Return what the twin's operators make of what the original's layers put out."""
        if not self._single:
            return {}
        if self._part is None:
            self._part = isolate(self._graph, [one.index for one in self._single])
        given = {
            tensor: self._graph.tensors[tensor].raw(real[self._counterparts[tensor][0]])
            for one in self._single
            for tensor in self._graph.fed(one)
        }
        made = arm.run_part(self._part, given, keep=True)
        return {one.index: self._real(one.outputs[0], made) for one in self._single}

    def _measure(
        self, original_input: Values, real: Mapping[int, Real], alone: Mapping[int, Real]
    ) -> None:
        outputs = {op: (self._original_op(op), got) for op, got in alone.items()}
        read = partial(self._reader.answers, original_input)
        home, answers = answers_behind(self._layers, read, real, outputs)
        if home.failure is not None:
            return
        for op, answer in answers.items():
            if answer.failure is None and isfinite(moved := margin_change(home, answer)):
                self._margins.setdefault(op, []).append((abs(moved), home.differs(answer)))

    def _real(self, tensor: int, state: State) -> Real:
        return self._graph.tensors[tensor].real(state[tensor])

    def _wanted(self, op: int) -> int:
        return self._counterparts[self._graph.operators[op].outputs[0]][0]

    def _original_op(self, op: int) -> int:
        return self._counterparts[self._graph.operators[op].outputs[0]][1]


def _constants(found: ConstantError | None) -> LayerConstants | None:
    if found is None:
        return None
    steps = found.steps if isfinite(found.steps) else None
    return LayerConstants(steps, found.explained, found.overflows)


def margin_change(home: Answer, other: Answer) -> float:
    """Return by how much the margin of a decision changes; their distance where one has none.

    Args:
        home: the answer whose decision is meant; it did not fail.
        other: the answer that is held against it.

    """
    change = home.margin(home) - other.margin(home)
    return change if isfinite(change) else other.distance(home)


class _OnDevice:
    """The layers of the device against those of the twin."""

    def __init__(self, compressed: LayeredModel, device: DeviceSide) -> None:
        self._graph = graph = compressed.graph
        self._arm = ProbedArm(graph, compressed.content, device.opens)
        self._parts = [
            isolate(graph, group) for group in operators_together(graph, device.payload_limit)
        ]
        steps = {one.index: _step(graph, one) for one in graph.layers}
        self._entire_sums = {op: ErrorSums(step) for op, step in steps.items()}
        self._single_sums = {op: ErrorSums(step) for op, step in steps.items()}
        self._captures = True

    def close(self) -> None:
        self._arm.close()

    def add(
        self, twin_arm: ProbedArm, encoded: Values, twin: State, notes: dict[str, None]
    ) -> None:
        """Look into an input, of which the twin's tensors were observed."""
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


def _step(graph: Graph, one: GraphOp) -> float | None:
    scales = graph.tensors[one.outputs[0]].scales if one.outputs else ()
    return scales[0] if len(scales) == 1 else None


Progress = Callable[[int, int], None]
"""Is called with the number of inputs that are done, and that of all."""


def walk(
    layers: LayerWalk,
    inputs: Sequence[tuple[Values, Values | None]],
    sensitivity_inputs: int,
    progress: Progress = lambda _done, _all: None,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Look into inputs until they are done or it is stopped; return how many were looked into.

    Args:
        layers: looks into them.
        inputs: as the compressed model takes each, and as the original does.
        sensitivity_inputs: how many of them the sensitivity is measured on.
        progress: is told how far it is.
        stopped: whether the user wants to stop.

    """
    for at, (encoded, original_input) in enumerate(inputs):
        if stopped():
            return at
        layers.add(encoded, original_input, sensitivity=at < sensitivity_inputs)
        progress(at + 1, len(inputs))
    return len(inputs)
