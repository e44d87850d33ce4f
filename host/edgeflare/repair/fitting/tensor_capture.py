"""Intermediate tensors of a model on many inputs, as the host's kernels compute them.

A network may also be executed part by part, so that a part can be changed before its turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import unpack_rows
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import Part, extract
from edgeflare.models.model_probe import HostProbe, ProbeFailed, Values
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import Kernels


def captured(
    content: bytes,
    rows: NDArray[np.generic],
    tensors: Sequence[int],
    kernels: Kernels = "builtin",
) -> dict[int, NDArray[np.generic]]:
    """Return tensors of a model on inputs.

    Args:
        content: a `.tflite` file.
        rows: inputs as `pack_rows` makes them, (n, ...), n at least 1.
        tensors: positions in its graph: outputs of operators, or the model's input.
        kernels: the host's kernels that run it. XNNPACK keeps most tensors to itself.

    Returns:
        Raw values by tensor, (n, *shape), without the batch dimension of a tensor (1, *shape).

    Raises:
        UserError: the runtime refuses the model or an input, or does not give one of the tensors.

    """
    values: dict[int, NDArray[np.generic]] = {}
    for at, row in enumerate(each_captured(content, rows, tensors, kernels)):
        for tensor, array in row.items():
            if at == 0:
                values[tensor] = np.empty((len(rows), *array.shape), array.dtype)
            values[tensor][at] = array
    return values


def each_captured(
    content: bytes,
    rows: NDArray[np.generic],
    tensors: Sequence[int],
    kernels: Kernels = "builtin",
) -> Iterator[Mapping[int, Values]]:
    """Yield the tensors of a model on one input after the other, as `captured` has them.

    So what is computed from the tensors of many inputs needs the memory of one.
    """
    graph = Graph(content)
    given = network_inputs(graph, rows)
    with HostProbe(content, kernels, capture=True) as probe:
        known = {*given, *probe.made}
        for tensor in tensors:
            if tensor not in known:
                raise UserError(
                    f"tensor {tensor}, {graph.tensors[tensor].name!r}, cannot be read on the "
                    f"kernels {kernels}: take builtin or reference"
                )
        inputs = [given[tensor] for tensor in probe.given]
        for some, outputs in each_answered(probe, inputs, "the model gave no answer"):
            seen = dict(zip(probe.made, outputs, strict=True))
            seen |= {tensor: values[some] for tensor, values in given.items()}
            for number in range(some.stop - some.start):
                yield {tensor: _unbatched(seen[tensor][number]) for tensor in tensors}


def each_answered(
    probe: HostProbe, given: Sequence[Values], said: str
) -> Iterator[tuple[slice, tuple[Values, ...]]]:
    """Yield what a model makes of many inputs, as `HostProbe.run_each` does.

    Args:
        probe: the model.
        given: values of its inputs, (n, ...) each.
        said: what is wrong where it makes nothing, for the message of the UserError.

    """
    try:
        yield from probe.run_each(given)
    except ProbeFailed as failed:
        raise UserError(f"{said} on {failed}") from failed


def answered(probe: HostProbe, given: Sequence[Values], said: str) -> Sequence[Values]:
    """Return what a model makes of one input; see `each_answered`."""
    try:
        return probe.run(given)
    except ProbeFailed as failed:
        raise UserError(f"{said}: {failed}") from failed


def network_inputs(graph: Graph, rows: NDArray[np.generic]) -> dict[int, NDArray[np.generic]]:
    """Return the values of each input of a network by its tensor, (n, *shape) in its dtype.

    Args:
        graph: graph of the network.
        rows: inputs as `pack_rows` makes them of the graph's inputs.

    """
    tensors = [graph.tensors[input_].as_interface for input_ in graph.inputs]
    return dict(zip(graph.inputs, unpack_rows(tensors, rows), strict=True))


def _unbatched(values: Values) -> Values:
    return values[0] if values.ndim and values.shape[0] == 1 else values


_IN_MEMORY = 2**26
"""Bytes of a tensor on all inputs; a larger one lies in a file."""


class StepwiseExecution:
    """The intermediate tensors of a network on many inputs, as far as it is executed.

    Each operator is executed once. Of the tensors, those are kept that operators read which are not
    executed yet, and those that are asked for later. Large ones lie in temporary files, so that
    memory does not have to hold their values on all inputs.
    """

    def __init__(self, graph: Graph, rows: NDArray[np.generic]) -> None:
        """Begin before the first operator; the built-in kernels execute the network.

        Args:
            graph: graph of the network.
            rows: inputs as `pack_rows` makes them, (n, ...), n at least 1.

        """
        self._values = network_inputs(graph, rows)
        self._executed = 0

    def advance(self, graph: Graph, until: int, later: Collection[int] = ()) -> None:
        """Execute the operators before a position that are not executed yet.

        Args:
            graph: graph of the network, with constants that these operators are executed with.
            until: the position of the first operator that is not executed.
            later: tensors that are kept, also where all that reads them is executed.

        Raises:
            UserError: the network cannot be cut, or the runtime refuses it or an input.

        """
        if any(self._executed <= layer.index < until for layer in graph.layers):
            part = extract(graph, self._executed, until - 1)
            self._values.update(self._made(part, graph))
        self._executed = max(self._executed, until)
        waiting = {
            tensor for layer in graph.layers if layer.index >= until for tensor in graph.fed(layer)
        } | set(later)
        self._values = {
            tensor: values for tensor, values in self._values.items() if tensor in waiting
        }

    def values(self, tensor: int) -> NDArray[np.generic]:
        """Return the raw values of a tensor that is kept, (n, *its shape)."""
        return self._values[tensor]

    def _made(self, part: Part, graph: Graph) -> dict[int, NDArray[np.generic]]:
        given = [self._values[tensor] for tensor in part.inputs]
        made: list[NDArray[np.generic]] = []
        with HostProbe(part.content, "builtin") as probe:
            said = f"{graph.source} gave no answer"
            for some, outputs in each_answered(probe, given, said):
                if not made:
                    made = [
                        _empty((len(given[0]), *output.shape[1:]), output.dtype)
                        for output in outputs
                    ]
                for values, output in zip(made, outputs, strict=True):
                    values[some] = output
        return dict(zip(part.outputs, made, strict=True))


def _empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    """Return an array to be filled, in a file without a name where it is large."""
    if prod(shape) * dtype.itemsize <= _IN_MEMORY:
        return np.empty(shape, dtype)
    with TemporaryFile(prefix="edgeflare-") as file:
        return np.memmap(file, dtype, "w+", shape=shape)  # keeps the file open for itself
