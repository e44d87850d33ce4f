"""Run layers of the original in isolation, on other inputs or with other constants, or its tails.

Each part that is cut out of the original is written and opened once, and serves all findings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, closing

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.probed_arm import OpenProbe, State
from edgeflare.models.graph_parts import Part, extract_tails, isolate
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
            content: its file.
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

    def capture(self, given: Values) -> State:
        """Run the original, and return its input and the outputs of its operators, by tensor.

        Raises:
            ProbeRefused, ProbeFailed: it does not run, or not on this input.

        """
        if self._whole is None:
            self._whole = self._open(self._content, capture=True)
        made = dict(zip(self._whole.made, self._whole.run([given]), strict=True))
        return {self.graph.inputs[0]: given, **made}

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
        return dict(zip(part.outputs, outputs, strict=True))

    def altered(
        self, operators: Sequence[int], inputs: Sequence[Real], constants: Mapping[int, Real]
    ) -> dict[int, Real]:
        """Run operators independently as `alone` does, with other constants, in float32.

        Args:
            operators: as for `alone`.
            inputs: as for `alone`.
            constants: by tensor; all others stay as they are.

        """
        values = {tensor: real.astype(np.float32) for tensor, real in constants.items()}
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
            constants: by tensor. They are read at the first call for these operators and tensors
                only, so each call has to give the same values.

        """

        def cut() -> Part:
            values: dict[int, Values] = {}
            for operator in operators:
                for index in self.graph.operators[operator].inputs:
                    tensor = self.graph.tensors[index]
                    if tensor.constant and (tensor.dtype == "float32" or tensor.scales):
                        known = np.broadcast_to(constants.get(index, np.zeros(())), tensor.shape)
                        values[index] = known.astype(np.float32)
            return isolate(self.graph, operators, values, linear=True)

        key = ("linear", tuple(operators), tuple(constants))
        part, outputs = self._run(key, cut, inputs)
        return dict(zip(part.outputs, outputs, strict=True))

    def tails(self, behind: Sequence[int], until: int, inputs: Sequence[Real]) -> list[Real]:
        """Run tails of the network, each from behind one operator.

        Args:
            behind: positions of the operators behind which the tails begin.
            until: the tensor at which they end.
            inputs: the inputs of each tail (see `Graph.crossing`), one tail after the other.

        Returns:
            That tensor, once for each tail.

        """
        key = ("tails", tuple(behind), until)
        return self._run(key, lambda: extract_tails(self.graph, behind, until), inputs)[1]

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
            values.astype(tensors[tensor].dtype)
            for tensor, values in zip(part.inputs, inputs, strict=True)
        ]
        outputs = zip(part.outputs, probe.run(given), strict=True)
        return [tensors[tensor].real(values) for tensor, values in outputs]

    def _open(self, content: bytes, *, capture: bool = False) -> Probe:
        return self._stack.enter_context(closing(self._opens(content, capture)))
