"""The intermediate tensors of a model: the outputs of its operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeflare_agent.runtime.answers import ModelRejected


def readable_tensors(interpreter: Any, nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the details of every tensor that an operator writes, in execution order.

    The model is run once on zeros, which shows what cannot be read: tensors that a delegate keeps
    to itself, and those whose shape is known only then, are left out; so are strings.

    Args:
        interpreter: the runtime's, with tensors allocated, opened to keep all tensors.
        nodes: its list of nodes.

    Raises:
        ModelRejected: the model does not run in this mode.

    """
    for details in interpreter.get_input_details():
        tensor = interpreter.tensor(details["index"])()
        tensor.fill(0)
        # A view that is alive forbids the interpreter to run.
        del tensor
    try:
        interpreter.invoke()
    except (RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())
        raise ModelRejected(f"it does not run when all tensors are kept: {words}") from error
    made = dict.fromkeys(
        int(index) for node in nodes if node["op_name"] != "DELEGATE" for index in node["outputs"]
    )
    found = (_readable(interpreter, index) for index in made)
    return [details for details in found if details is not None]


def _readable(interpreter: Any, index: int) -> dict[str, Any] | None:
    """Return the details of a tensor; None where its values cannot be read."""
    try:
        details: dict[str, Any] = interpreter._get_tensor_details(index, 0)
        value = interpreter.get_tensor(index)
    except ValueError:  # also of a type that numpy lacks
        return None
    readable = value.dtype.kind in "biuf" and value.shape == tuple(details["shape"])
    return details if readable else None
