"""The layers of the twin against those of the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, sqrt

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.diagnose.activations_apart import NOT_APART, ActivationApart, activation_apart
from edgeflare.diagnose.arm_probe import OpenProbe, ProbedArm, State
from edgeflare.diagnose.constant_error import ConstantError, compare_constants
from edgeflare.diagnose.layer_difference import FLOAT_NOISE, layer_name
from edgeflare.diagnose.layer_graphs import LayeredModel
from edgeflare.diagnose.layer_matching import CONVERSIONS, match_layers
from edgeflare.diagnose.layers.layer_figures import (
    ComparisonNotes,
    LayerConstants,
    LayerFigures,
    RangeSums,
    RangeUse,
    Sensitivity,
    error_sums,
    listed,
)
from edgeflare.diagnose.margin_error import answers_behind
from edgeflare.diagnose.original_layers import OriginalLayers, Real
from edgeflare.diagnose.output_stage import ModelReader
from edgeflare.diagnose.quantized_places import INPUT, counterparts
from edgeflare.models.graph_parts import Part, isolate
from edgeflare.models.model_probe import Values
from edgeflare.models.quantized_range import range_of
from edgeflare.models.tflite_graph import Graph, GraphOp


class OriginalComparison:
    """The layers of the twin against those of the original, input by input.

    Args:
        graph: graph of the compressed model.
        original: what its layers are held against.
        opens: opens models on the host, with the twin's kernels.
        notes: takes what cannot be seen.

    """

    def __init__(
        self, graph: Graph, original: OriginalSide, opens: OpenProbe, notes: ComparisonNotes
    ) -> None:
        self._graph = graph
        self._reader = original.reader
        self._layers = OriginalLayers(original.model.graph, original.model.content, opens)
        self._matched = match_layers(graph, original.model.graph)
        matched = {op: there for op, (there, _) in self._matched.items()}
        self._counterparts = counterparts(graph, original.model.graph, matched)
        self._apart = {
            op: activation_apart(graph, op, original.model.graph, there)
            for op, there in matched.items()
        }
        self._single = [layer for layer in graph.layers if self._can_run_alone(layer)]
        shown = {operator.index for operator in self._shown}
        without = [
            layer
            for layer in graph.layers
            if layer.index not in shown and layer.name not in CONVERSIONS and layer.outputs
        ]
        if without:
            names = listed(str(layer_name(graph, operator)) for operator in without)
            notes.add("matched", f"the original has no layer like {names}")
        self._part: Part | None = None
        self._entire_sums, self._single_sums = error_sums(graph), error_sums(graph)
        ranges = {
            operator.index: range_of(graph.tensors[operator.outputs[0]]) for operator in self._shown
        }
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
        return (
            layer
            for layer in graph.layers
            if layer.outputs and layer.outputs[0] in self._counterparts
        )

    @property
    def input_range(self) -> RangeUse | None:
        """How the range of the compressed model's input goes with the original's inputs."""
        return None if self._input_range is None else self._input_range.figures()

    def close(self) -> None:
        """Close all that was opened."""
        self._layers.close()

    def add(
        self, arm: ProbedArm, twin: State, original_input: Values, *, sensitivity: bool
    ) -> None:
        """Look into an input.

        Args:
            arm: the twin.
            twin: tensors of the twin, as they were observed.
            original_input: the input as the original takes it.
            sensitivity: whether that is measured on it.

        Raises:
            ProbeRefused, ProbeFailed: the original does not run, or not on this input.

        """
        tensors = self._layers.graph.tensors
        seen = self._layers.capture(original_input)
        real = {tensor: tensors[tensor].real(values) for tensor, values in seen.items()}
        if self._input_range is not None:
            self._input_range.add(real[self._layers.graph.inputs[0]])
        for operator in self._shown:
            made = operator.outputs[0]
            wanted = real.get(self._counterparts[made][0])
            if wanted is None:
                continue
            wanted = self._of(operator.index).of_original(wanted)
            if made in twin:
                got = self._of(operator.index).of_compressed(self._real(made, twin))
                self._entire_sums[operator.index].add(wanted, got)
            if operator.index in self._ranges:
                self._ranges[operator.index].add(wanted)
        alone = self._alone(arm, real)
        for op, (its, got) in alone.items():
            self._single_sums[op].add(its, got)
        if sensitivity:
            self._measure(original_input, real, alone)

    def completed(self, known: LayerFigures, operator: GraphOp) -> LayerFigures:
        """Return the figures of a layer with those that were found here."""
        op, made = operator.index, operator.outputs[0]
        if made not in self._counterparts:
            return known
        return replace(
            known,
            original_index=maker if (maker := self._counterparts[made][1]) != INPUT else None,
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
        error = float(np.std(moved, ddof=1)) / sqrt(len(moved)) if len(moved) > 1 else None
        return Sensitivity(len(moved), float(np.mean(moved)), error, sum(changed))

    def _can_run_alone(self, operator: GraphOp) -> bool:
        """Whether a layer can be given what the original's layers put out, and so can its own."""
        graph, fed = self._graph, self._graph.fed(operator)
        shown = (*fed, *operator.outputs[:1])
        known = all(tensor in self._counterparts for tensor in shown)
        if not fed or graph.unreadable(operator) or not known:
            return False
        if (
            operator.index not in self._matched
        ):  # a conversion, of which is known what it should make
            return True
        theirs = self._layers.graph.operators[self._matched[operator.index][0]]
        same = len(self._layers.graph.fed(theirs)) == len(fed)
        return same and not self._layers.unreadable(theirs.index)

    def _alone(self, arm: ProbedArm, real: Mapping[int, Real]) -> dict[int, tuple[Real, Real]]:
        """Return what operators make of the original's values, rounded as they read them.

        Returns:
            By layer, what the original's operator makes of that, and what the twin's does.

        """
        if not self._single:
            return {}
        if self._part is None:
            self._part = isolate(self._graph, [operator.index for operator in self._single])
        given = {
            tensor: self._graph.tensors[tensor].raw(real[self._counterparts[tensor][0]])
            for operator in self._single
            for tensor in self._graph.fed(operator)
        }
        made = arm.run_part(self._part, given, keep=True)
        matched = [operator for operator in self._single if operator.index in self._matched]
        outputs = self._layers.alone(
            [self._matched[operator.index][0] for operator in matched],
            [
                self._real(tensor, given)
                for operator in matched
                for tensor in self._graph.fed(operator)
            ],
        )
        wanted = {
            operator.index: self._of(operator.index).of_original(
                outputs[self._wanted(operator.index)]
            )
            for operator in matched
        }
        return {
            operator.index: (
                wanted[operator.index]
                if operator.index in wanted
                else self._real(operator.inputs[0], given),
                self._of(operator.index).of_compressed(self._real(operator.outputs[0], made)),
            )
            for operator in self._single
        }

    def _measure(
        self,
        original_input: Values,
        real: Mapping[int, Real],
        alone: Mapping[int, tuple[Real, Real]],
    ) -> None:
        """Measure what the error of each layer by itself does to the original's decision.

        An operator that hands on what it is given adds none.
        """
        outputs = {
            op: (
                self._original_op(op),
                self._of(op).of_original(real[self._wanted(op)]) + (got - wanted),
            )
            for op, (wanted, got) in alone.items()
        }
        off = {op: output for op, output in outputs.items() if _is_off(*alone[op])}
        read = partial(self._reader.answers, original_input)
        home, answers = answers_behind(self._layers, read, real, off)
        if home.failure is not None:
            return
        for op, answer in answers.items():
            if answer.failure is None and isfinite(moved := margin_change(home, answer)):
                self._margins.setdefault(op, []).append((abs(moved), home.differs(answer)))
        for op in outputs.keys() - off.keys():
            self._margins.setdefault(op, []).append((0.0, False))

    def _of(self, op: int) -> ActivationApart:
        return self._apart.get(op, NOT_APART)

    def _real(self, tensor: int, state: State) -> Real:
        return self._graph.tensors[tensor].real(state[tensor])

    def _wanted(self, op: int) -> int:
        return self._counterparts[self._graph.operators[op].outputs[0]][0]

    def _original_op(self, op: int) -> int:
        return self._counterparts[self._graph.operators[op].outputs[0]][1]


@dataclass(frozen=True, slots=True)
class OriginalSide:
    """The original that the layers of the compressed model are held against.

    Attributes:
        model: the original.
        reader: reads answers from its outputs.

    """

    model: LayeredModel
    reader: ModelReader


def _is_off(wanted: Real, got: Real) -> bool:
    """Whether an output is off by more than float32 loses of it."""
    least = FLOAT_NOISE * np.abs(wanted).max(initial=0.0)
    return not bool((np.abs(got - wanted) <= least).all())


def _constants(found: ConstantError | None) -> LayerConstants | None:
    if found is None:
        return None
    steps = found.steps if isfinite(found.steps) else None
    return LayerConstants(steps, found.explained, found.overflows, found.pruned)


def margin_change(home: Answer, other: Answer) -> float:
    """Return by how much the margin of a decision changes; their distance where one has none.

    Args:
        home: the answer whose decision is meant; it did not fail.
        other: the answer that is held against it.

    """
    change = home.margin(home) - other.margin(home)
    return change if isfinite(change) else other.distance(home)
