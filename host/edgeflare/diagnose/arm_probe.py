"""A model on one arm, run whole, in parts, or observed.

Intermediate tensors are observed by two methods: the runtime is asked to keep them all (*capture*),
or they are made outputs of the model (*exposure*). Neither can be relied on alone, since either may
change how the model is run; tflite-runtime 2.14 lets an ADD write its sum over a captured tensor
that is its input. So a method counts only if the model's output is the same to the bit as without
it. Where the two methods disagree about a tensor, the operator that writes it is run in isolation,
and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from edgeflare.diagnose.layer_difference import Difference, difference
from edgeflare.errors import UserError
from edgeflare.models.detection_rows import with_unused_rows_zeroed
from edgeflare.models.graph_parts import Part, extract, isolate, readable_outputs
from edgeflare.models.model_probe import Probe, ProbeFailed, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph

OpenProbe = Callable[[bytes, bool], Probe]
"""Opens a model on an arm; the second argument is true to capture its tensors."""

State = Mapping[int, Values]
"""Values by tensor of the graph."""

ObservationMethod = Literal["capture", "exposure"]


@dataclass(frozen=True, slots=True)
class ObservedTensors:
    """The tensors of a model that were observed on one input.

    Attributes:
        method: how they were observed; None where no intermediate tensor could be.
        state: the observed values, the input included.
        perturbation: how much observing changed the output, with the first method that did; None
            where none did.

    """

    method: ObservationMethod | None
    state: State
    perturbation: Difference | None = None


class ProbedArm:
    """A model on one arm. Models that it opens stay open for further inputs until it is closed.

    Attributes:
        runs: how often the arm was asked.

    """

    def __init__(self, graph: Graph, content: bytes, opens: OpenProbe) -> None:
        """Take a model and a way to open it; nothing is opened yet."""
        self.runs = 0
        self._most_runs: int | None = None
        self._graph = graph
        self._content = content
        self._opens = opens
        self._stack = ExitStack()
        self._probes: dict[tuple[bytes, bool], Probe] = {}

    def close(self) -> None:
        """Close all that was opened."""
        self._stack.close()

    def allow(self, runs: int) -> None:
        """Limit the arm to that many further runs; after them it raises `ProbeRefused`."""
        self._most_runs = self.runs + runs

    def outputs(self, inputs: Sequence[Values]) -> State:
        """Run the unchanged model, and return its outputs by tensor.

        Raises:
            ProbeRefused, ProbeFailed: the model does not run, or not on these inputs.

        """
        return self._named(self._graph.outputs, self._probe(self._content).run(inputs))

    def observe(self, inputs: Sequence[Values], outputs: State) -> ObservedTensors:
        """Run the model, and observe all its tensors.

        Args:
            inputs: inputs of the model.
            outputs: outputs of the model without observation.

        """
        given = dict(zip(self._graph.inputs, inputs, strict=True))
        perturbation = None
        seen: dict[ObservationMethod, State] = {}
        for method in _METHODS:
            state = self._observed_by(method, inputs)
            if state is None or not outputs.keys() <= state.keys():
                continue
            moved = [
                difference(self._graph.tensors[tensor], wanted, state[tensor])
                for tensor, wanted in outputs.items()
                if wanted.tobytes() != state[tensor].tobytes()
            ]
            if moved:
                largest = max(moved, key=lambda moved_tensor: moved_tensor.max_error)
                perturbation = perturbation or largest
            else:
                seen[method] = {**given, **state}
        if not seen:
            return ObservedTensors(None, given, perturbation)
        method, state = next(iter(seen.items()))
        if len(seen) > 1:
            state = self._resolved(seen["capture"], seen["exposure"])
        return ObservedTensors(method, state, perturbation)

    def run_part(self, part: Part, values: State, *, keep: bool) -> State:
        """Run a part of the model.

        Args:
            part: the part.
            values: values by tensor, at least the inputs of the part.
            keep: whether it stays open, to be run on other inputs too.

        Raises:
            ProbeRefused, ProbeFailed: it does not run, or not on these values.

        """
        inputs = [values[tensor] for tensor in part.inputs]
        if keep:
            return self._named(part.outputs, self._probe(part.content).run(inputs))
        with closing(self._opens(part.content, False)) as probe:
            self._count()
            return self._named(part.outputs, probe.run(inputs))

    def _observed_by(self, method: ObservationMethod, inputs: Sequence[Values]) -> State | None:
        """Return the tensors by one method, or None where the arm does not support it."""
        try:
            if method == "capture":
                probe = self._probe(self._content, capture=True)
                return self._named(probe.made, probe.run(inputs))
            part = self._exposed
            return self._named(part.outputs, self._probe(part.content).run(inputs))
        except (ProbeRefused, ProbeFailed, UserError):
            return None

    @cached_property
    def _exposed(self) -> Part:
        """The model with all intermediate tensors as outputs."""
        layers = self._graph.layers
        everything = readable_outputs(self._graph, layers)
        return extract(self._graph, 0, layers[-1].index, expose=everything)

    def _resolved(self, captured: State, exposed: State) -> State:
        """Return the tensors that both methods agree on, or that their operator alone confirms."""
        agreed = dict(exposed)
        disputed = [
            layer
            for layer in self._graph.layers
            if any(
                captured[tensor].tobytes() != exposed[tensor].tobytes()
                for tensor in layer.outputs
                if tensor in captured and tensor in exposed
            )
        ]
        if not disputed:
            return agreed
        try:
            part = isolate(self._graph, [operator.index for operator in disputed])
            made = self.run_part(part, exposed, keep=True)
        except (UserError, ProbeFailed):
            made = {}
        for operator in disputed:
            for tensor in operator.outputs:
                # The operator was given the exposed inputs, so it can confirm only exposed outputs.
                if tensor not in made or made[tensor].tobytes() != exposed[tensor].tobytes():
                    agreed.pop(tensor, None)
        return agreed

    def _probe(self, content: bytes, *, capture: bool = False) -> Probe:
        key = (content, capture)
        if key not in self._probes:
            self._probes[key] = self._stack.enter_context(closing(self._opens(content, capture)))
        self._count()
        return self._probes[key]

    def _count(self) -> None:
        if self.runs == self._most_runs:
            raise ProbeRefused("it has been asked as often as it may be for one finding")
        self.runs += 1

    def _named(self, tensors: Sequence[int], values: Sequence[Values]) -> State:
        return with_unused_rows_zeroed(self._graph, dict(zip(tensors, values, strict=True)))


_METHODS: tuple[ObservationMethod, ...] = ("capture", "exposure")
