"""The operator in which a finding begins, as a model of its own with what it was fed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.explain_document import ExplainedFinding
from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import extract
from edgeflare.models.model_probe import HostProbe, ProbeFailed
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import in_words
from edgeflare_protos.kernel_sets import Kernels


@dataclass(frozen=True, slots=True)
class FailingOperator(LayerName):
    """The operator in which a finding begins.

    Attributes:
        what: what begins there, in words.

    """

    what: str


def where_it_begins(explained: ExplainedFinding) -> FailingOperator | None:
    """Return the operator that `explain` named; None where it named none.

    Of compression that is the operator that took most of the margin, of those that differ by more
    than quantization explains, else the one whose quantization is coarsest; of kernels the one
    where device and twin part.
    """
    found: LayerName | None
    what = _COMPRESSION
    if explained.verdict.name == "compression":
        loss = explained.twin_and_original
        found = loss.most
        coarse = next((layer for layer in loss.coarse if layer.operator_index >= 0), None)
        if found is None and coarse is not None:
            found, what = coarse, f"twin and original part here, {in_words(coarse.kind)}"
    else:
        found, parting = explained.begins_in, explained.device_and_twin
        what = _KERNEL if parting.first else f"{_KERNEL}, or earlier"
    return (
        None
        if found is None
        else FailingOperator(found.operator_index, found.name, found.tensor, what)
    )


_COMPRESSION = "twin and original part here, by more than quantization explains"
_KERNEL = "device and twin part here"


def cut_out(
    content: bytes, operator: int, kernels: Kernels, encoded: NDArray[np.generic]
) -> dict[str, bytes]:
    """Return the operator as a `.tflite`, its inputs as arrays, and what it gave on the host.

    Args:
        content: the compressed model's file.
        operator: position in execution order.
        kernels: the host's kernels, which make the inputs.
        encoded: the model's own input: (1, *input shape without its batch dimension).

    Returns:
        Files by name; none where the model cannot be cut.

    """
    try:
        graph = Graph(content)
        part = extract(graph, operator, operator)
        fed = _before(graph, operator, part.inputs, kernels, encoded)
        with closing(HostProbe(part.content, kernels)) as probe:
            given = probe.run([fed[tensor] for tensor in part.inputs])
    except (UserError, ValueError, ProbeFailed):
        return {}
    return {
        "operator.tflite": part.content,
        **{f"operator_input_{k}.npy": saved(fed[t]) for k, t in enumerate(part.inputs)},
        **{f"operator_output_{k}.npy": saved(values) for k, values in enumerate(given)},
    }


def saved(values: NDArray[Any]) -> bytes:
    """Return an array as the contents of an `.npy` file."""
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def saved_together(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as the contents of an `.npz` file, the same for the same arrays."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _before(
    graph: Graph,
    operator: int,
    wanted: tuple[int, ...],
    kernels: Kernels,
    encoded: NDArray[np.generic],
) -> dict[int, NDArray[np.generic]]:
    """Return the tensors that an operator is fed, as the operators before it make them."""
    fed: dict[int, NDArray[np.generic]] = {graph.inputs[0]: encoded}
    made = [tensor for tensor in wanted if tensor not in fed]
    if made:
        part = extract(graph, 0, operator - 1, expose=made)
        with closing(HostProbe(part.content, kernels)) as probe:
            fed |= dict(zip(part.outputs, probe.run([encoded]), strict=True))
    return fed
