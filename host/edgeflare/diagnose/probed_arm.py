"""One side of a comparison: a model on one arm, run whole, in parts, or with all tensors in sight.

Tensors on the way can be seen in two ways: the runtime is asked to keep them all (*capture*), or
they are made outputs of the model (*exposure*). Neither is to be trusted by itself. Either may
change how the model is run; tflite-runtime 2.14 lets an ADD write its sum over a captured tensor
that it was given. So a way counts only if the model's output is the same to the bit as without it,
and where the two ways disagree about a tensor, the operator that makes it is run by itself, and
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from edgeflare.diagnose.tensor_difference import Difference, difference
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, extract, isolate
from edgeflare.models.model_probe import Probe, ProbeFailed, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph

OpenProbe = Callable[[bytes, bool], Probe]
"""Opens a model on an arm; True to capture."""

State = Mapping[int, Values]
"""Values by tensor of the graph."""

ObservationMethod = Literal["capture", "exposure"]


@dataclass(frozen=True, slots=True)
class ObservedTensors:
    """What was seen of a model on its way from input to output.

    Attributes:
        way: by which it was seen; None where nothing between input and output could be.
        state: what was seen, the input included.
        perturbation: how far looking moved the output, in the first way that did; None where
            none did.

    """

    way: ObservationMethod | None
    state: State
    perturbation: Difference | None = None


class ProbedArm:
    """A model on one arm; what it opens serves all inputs, until it is closed.

    Attributes:
        runs: how often the arm was asked.

    """

    def __init__(self, graph: Graph, content: bytes, opens: OpenProbe) -> None:
        """Take an arm; nothing is opened yet."""
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
        """Let the arm be asked so many times from now on; then it refuses."""
        self._most_runs = self.runs + runs

    def outputs(self, inputs: Sequence[Values]) -> State:
        """Run the model as it is.

        Raises:
            ProbeRefused, ProbeFailed: the model does not run, or not on these inputs.

        """
        return self._named(self._graph.outputs, self._probe(self._content).run(inputs))

    def see(self, inputs: Sequence[Values], outputs: State) -> ObservedTensors:
        """Run the model with all tensors in sight.

        Args:
            inputs: for the model.
            outputs: what it puts out when nobody looks.

        """
        given = dict(zip(self._graph.inputs, inputs, strict=True))
        perturbation = None
        seen: dict[ObservationMethod, State] = {}
        for way in _WAYS:
            state = self._looked(way, inputs)
            if state is None or not outputs.keys() <= state.keys():
                continue
            if moved := self._moved(outputs, state):
                perturbation = perturbation or moved
            else:
                seen[way] = {**given, **state}
        if not seen:
            return ObservedTensors(None, given, perturbation)
        way, state = next(iter(seen.items()))
        if len(seen) > 1:
            state = self._settled(seen["capture"], seen["exposure"])
        return ObservedTensors(way, state, perturbation)

    def run_part(self, part: Part, values: State, *, keep: bool) -> State:
        """Run a part of the model.

        Args:
            part: which.
            values: at least what the part takes.
            keep: leave it open, since it will be run on other inputs too.

        Raises:
            ProbeRefused, ProbeFailed: it does not run, or not on these values.

        """
        inputs = [values[tensor] for tensor in part.inputs]
        if keep:
            return self._named(part.outputs, self._probe(part.content).run(inputs))
        with closing(self._opens(part.content, False)) as probe:
            self._count()
            return self._named(part.outputs, probe.run(inputs))

    def _looked(self, way: ObservationMethod, inputs: Sequence[Values]) -> State | None:
        """Return the tensors on the way, or None where the arm does not show them so."""
        try:
            if way == "capture":
                probe = self._probe(self._content, capture=True)
                return self._named(probe.made, probe.run(inputs)) if probe.captures else None
            part = self._exposed
            return self._named(part.outputs, self._probe(part.content).run(inputs))
        except (ProbeRefused, ProbeFailed, UserError):
            return None

    @cached_property
    def _exposed(self) -> Part:
        """The model with everything on the way for outputs."""
        layers = self._graph.layers
        everything = [tensor for one in layers for tensor in one.outputs]
        return extract(self._graph, 0, layers[-1].index, expose=everything)

    def _moved(self, outputs: State, state: State) -> Difference | None:
        moved = [
            difference(self._graph.tensors[tensor], wanted, state[tensor])
            for tensor, wanted in outputs.items()
            if wanted.tobytes() != state[tensor].tobytes()
        ]
        return max(moved, key=lambda one: one.max_real, default=None)

    def _settled(self, captured: State, exposed: State) -> State:
        """Return what both ways show, and where they disagree what the operator itself puts out."""
        agreed = dict(exposed)
        disputed = [
            one
            for one in self._graph.layers
            if any(
                tensor in captured and captured[tensor].tobytes() != exposed[tensor].tobytes()
                for tensor in one.outputs
            )
        ]
        if not disputed:
            return agreed
        part = isolate(self._graph, [one.index for one in disputed])
        try:
            made = self.run_part(part, exposed, keep=True)
        except (ProbeRefused, ProbeFailed):
            made = {}
        for one in disputed:
            for tensor in one.outputs:
                # The operator was fed with what was exposed, so it can bear out only that.
                if tensor not in made or made[tensor].tobytes() != exposed[tensor].tobytes():
                    del agreed[tensor]
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

    @staticmethod
    def _named(tensors: Sequence[int], values: Sequence[Values]) -> State:
        return dict(zip(tensors, values, strict=True))


_WAYS: tuple[ObservationMethod, ...] = ("capture", "exposure")
