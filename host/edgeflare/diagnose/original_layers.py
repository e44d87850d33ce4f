"""Run layers of the original in isolation, on other inputs or with other constants, or its tails.

Each part that is cut out of the original is written and opened once, and serves all findings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.arm_probe import OpenProbe, State
from edgeflare.models.detection_rows import with_unused_rows_zeroed
from edgeflare.models.graph_parts import Part, extract_tails, isolate, tail_ends
from edgeflare.models.model_probe import Probe, Values
from edgeflare.models.tflite_graph import Graph

Real = NDArray[np.float64]
"""Real values of a tensor, in its shape."""


class OriginalLayers:
    """The layers of an original; what it opens serves all inputs, until it is closed.

    Attributes:
        graph: the original's.

    """

    def __init__(self, graph: Graph, content: bytes, opens: OpenProbe) -> None:
        """Take a model; nothing is opened yet.

        Args:
            graph: the original's.
            content: content of the original's file.
            opens: opens models on the host; True to capture.

        """
        self.graph = graph
        self._content = content
        self._opens = opens
        self._stack = ExitStack()
        self._parts: dict[Hashable, tuple[Part, Probe]] = {}
        self._whole: Probe | None = None

    def close(self) -> None:
        """Close all that was opened."""
        self._stack.close()

    def made(self, operator: int) -> int:
        """Return the first tensor that an operator puts out; the model's input for -1."""
        return self.graph.inputs[0] if operator < 0 else self.graph.operators[operator].outputs[0]

    def before(self, operator: int) -> int:
        """Return the layer that is run before an operator; -1 for the first."""
        return max(
            (layer.index for layer in self.graph.layers if layer.index < operator), default=-1
        )

    def capture(self, given: Values) -> State:
        """Run the original, and return its input and the outputs of its operators, by tensor.

        Raises:
            ProbeRefused, ProbeFailed: it does not run, or not on this input.

        """
        if self._whole is None:
            self._whole = self._open(self._content, capture=True)
        made = dict(zip(self._whole.made, self._whole.run([given]), strict=True))
        return {self.graph.inputs[0]: given, **with_unused_rows_zeroed(self.graph, made)}

    def unreadable(self, operator: int) -> bool:
        """Whether some input or output of an operator cannot be read."""
        return bool(self.graph.unreadable(self.graph.operators[operator]))

    def alone(self, operators: Sequence[int], inputs: Sequence[Real]) -> dict[int, Real]:
        """Run operators independently of each other.

        Args:
            operators: their positions, in execution order.
            inputs: the inputs of each of them, one operator after the other.

        Returns:
            Their outputs, by tensor.

        """
        part, outputs = self._run(
            ("alone", tuple(operators)), lambda: isolate(self.graph, operators), inputs
        )
        made = dict(zip(part.outputs, outputs, strict=True))
        return with_unused_rows_zeroed(self.graph, made)

    def altered(
        self,
        operators: Sequence[int],
        inputs: Sequence[Real],
        constants: Mapping[int, Real],
        *,
        keep: str = "",
    ) -> dict[int, Real]:
        """Run operators independently as `alone` does, with other constants, in float32.

        Args:
            operators: as for `alone`.
            inputs: as for `alone`.
            constants: constants by the tensor that an operator reads; all others stay as they are.
            keep: names these constants, so that what is opened stays open for other inputs; else
                it is closed again.

        """
        values = {tensor: real.astype(np.float32) for tensor, real in constants.items()}
        if keep:
            key = ("altered", keep, tuple(operators))
            part, outputs = self._run(key, lambda: isolate(self.graph, operators, values), inputs)
            return dict(zip(part.outputs, outputs, strict=True))
        part = isolate(self.graph, operators, values)
        with closing(self._opens(part.content, False)) as probe:
            outputs = self._asked(part, probe, inputs)
        return dict(zip(part.outputs, outputs, strict=True))

    def linear(
        self, operators: Sequence[int], inputs: Sequence[Real], constants: Mapping[int, Real]
    ) -> dict[int, Real]:
        """Run operators with other constants, zeros where none are given, and no activation.

        Args:
            operators: as for `alone`.
            inputs: as for `alone`.
            constants: constants by tensor. They are read at the first call for these operators and
                tensors only, so each call has to give the same values.

        """

        def cut() -> Part:
            values: dict[int, Values] = {}
            for operator in operators:
                one = self.graph.operators[operator]
                for index in set(one.inputs) - set(self.graph.fed(one)):
                    source, shape = self.graph.stored(index), self.graph.tensors[index].shape
                    if source is not None and source.has_values:
                        known = np.broadcast_to(constants.get(index, np.zeros(())), shape)
                        values[index] = known.astype(np.float32)
            return isolate(self.graph, operators, values, linear=True)

        key = ("linear", tuple(operators), tuple(constants))
        part, outputs = self._run(key, cut, inputs)
        return dict(zip(part.outputs, outputs, strict=True))

    def tails(
        self, behind: Sequence[int], until: Sequence[int], inputs: Sequence[Real]
    ) -> list[dict[int, Real]]:
        """Run tails of the network, each from behind one operator.

        Args:
            behind: positions of the operators behind which the tails begin.
            until: the tensors at which they end.
            inputs: the inputs of each tail (see `crossing_tensors`), one tail after the other.

        Returns:
            Of each tail those of the tensors that it makes.

        """
        key = ("tails", tuple(behind), tuple(until))
        cut = partial(extract_tails, self.graph, behind, until)
        ends = iter(self._run(key, cut, inputs)[1])
        made = [
            {tensor: next(ends) for tensor in tail_ends(self.graph, start, until)}
            for start in behind
        ]
        return [with_unused_rows_zeroed(self.graph, array) for array in made]

    def _run(
        self, key: Hashable, cut: Callable[[], Part], inputs: Sequence[Real]
    ) -> tuple[Part, list[Real]]:
        if key not in self._parts:
            part = cut()
            self._parts[key] = part, self._open(part.content)
        part, probe = self._parts[key]
        return part, self._asked(part, probe, inputs)

    def _asked(self, part: Part, probe: Probe, inputs: Sequence[Real]) -> list[Real]:
        tensors = self.graph.tensors
        given = [
            tensors[tensor].raw(values) for tensor, values in zip(part.inputs, inputs, strict=True)
        ]
        outputs = zip(part.outputs, probe.run(given), strict=True)
        return [tensors[tensor].real(values) for tensor, values in outputs]

    def _open(self, content: bytes, *, capture: bool = False) -> Probe:
        return self._stack.enter_context(closing(self._opens(content, capture)))
