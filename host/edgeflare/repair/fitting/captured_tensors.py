"""Intermediate tensors of a model on many inputs, as the host's kernels compute them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
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
        content: a `.tflite` file with one input.
        rows: inputs, (n, ...), n at least 1, each of the size of the model's input and in its
            dtype.
        tensors: positions in its graph: outputs of operators, or the model's input.
        kernels: the host's kernels that run it. XNNPACK keeps most tensors to itself.

    Returns:
        Raw values by tensor, (n, *shape), without the batch dimension of a tensor (1, *shape).

    Raises:
        UserError: the runtime refuses the model or an input, or does not give one of the tensors.
        InfrastructureError: no worker process can be started, or it is lost.

    """
    values: dict[int, NDArray[np.generic]] = {}
    for at, row in enumerate(each_captured(content, rows, tensors, kernels)):
        for tensor, one in row.items():
            if at == 0:
                values[tensor] = np.empty((len(rows), *one.shape), one.dtype)
            values[tensor][at] = one
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
    if len(graph.inputs) != 1:
        raise UserError(
            f"the model has {len(graph.inputs)} inputs, but tensors are captured of models with one"
        )
    given = graph.tensors[graph.inputs[0]]
    with HostProbe(content, kernels, capture=True) as probe:
        known = {given.index, *probe.made}
        for tensor in tensors:
            if tensor not in known:
                raise UserError(
                    f"tensor {tensor}, {graph.tensors[tensor].name!r}, cannot be read on the "
                    f"kernels {kernels}: take builtin or reference"
                )
        for number, row in enumerate(rows):
            one = np.ascontiguousarray(row.reshape(given.shape))
            try:
                made = dict(zip(probe.made, probe.run([one]), strict=True))
            except ProbeFailed as failed:
                raise UserError(f"the model gave no answer on input {number}: {failed}") from failed
            made[given.index] = one
            yield {tensor: _unbatched(made[tensor]) for tensor in tensors}


def _unbatched(values: Values) -> Values:
    return values[0] if values.ndim and values.shape[0] == 1 else values
