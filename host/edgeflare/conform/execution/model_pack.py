"""Many models in one file, their operands in one row, and what their answers are in its outputs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.pack_file import pack_file
from edgeflare.conform.graphs.operator_graph import (
    GraphValue,
    OperatorGraph,
    Values,
)
from edgeflare.core.tensor import Tensor
from edgeflare.core.tensor_rows import pack_rows, tensor_bytes
from edgeflare.models.evaluator import Signature

_ECHO = OperatorGraph((GraphValue("uint8", (2,)),), (), (0,), (0,))
"""No operator, and a tensor that is given and answered: a row needs a byte each way."""

_FAILED_NODE = re.compile(r"Node number (\d+) \((\w+)\) failed to")
_FAILED_RESULT = re.compile(r"(?:output|tensor) t(\d+) has shape")
_MISSHAPEN = re.compile(r"output t\d+ has shape .*, declared ")

_MISSING = re.compile(r" has no operator (\w+) version (\d+)")
"""How the agent's runtime says that no model with such an operator can load."""


class ModelPack:
    """Models side by side in one file. All have the same number of rows.

    Attributes:
        models: in the order in which they run.

    """

    def __init__(self, models: Sequence[PosedModel]) -> None:
        self.models = tuple(models)
        self._graphs = [one.graph for one in models]
        self._operands: list[Values] = [one for model in models for one in model.operands]
        given = any(one.values[at].size for one in self._graphs for at in one.inputs)
        answered = any(one.values[at].size for one in self._graphs for at in one.outputs)
        if not (given and answered):
            self._graphs.append(_ECHO)
            rows = max(one.rows for one in models)
            self._operands.append(np.zeros((rows, 2), np.uint8))

    @property
    def content(self) -> bytes:
        """The file."""
        return pack_file(self._graphs)

    def rows(self, signature: Signature) -> NDArray[np.generic]:
        """Return the operands of all models: (rows, *row), see `pack_rows`."""
        return pack_rows(signature.inputs, self._operands)

    def answers(
        self, signature: Signature, outputs: NDArray[np.generic]
    ) -> tuple[ModelAnswer, ...]:
        """Return the answer of each model.

        Args:
            signature: of the loaded file.
            outputs: (rows, size of one row), see `RawBatch`.

        """
        results = iter(_results(signature.outputs, outputs))
        return tuple(
            _answer(one, [next(results) for _ in one.graph.outputs]) for one in self.models
        )

    def suspect(self, failure: RunFailure) -> int | None:
        """Return the place of the model that a failure names, if it names one.

        It is a hint: a delegate's nodes have numbers too, and memory that was overwritten makes
        others fail.
        """
        if found := _FAILED_NODE.search(failure.detail):
            number, operator = int(found.group(1)), found.group(2)
            nodes = [node for one in self._graphs for node in one.nodes]
            if number < len(nodes) and nodes[number].operator == operator:
                return _owner([len(one.graph.nodes) for one in self.models], number)
        if missing := missing_operator(failure):
            for at, one in enumerate(self.models):
                if missing in ((node.operator, node.version) for node in one.graph.nodes):
                    return at
        if found := _FAILED_RESULT.search(failure.detail):
            sizes = [len(one.graph.values) for one in self.models]
            return _owner(sizes, int(found.group(1)))
        return None


def is_misshapen(detail: str) -> bool:
    """Return whether a runtime's error is that a result has another shape than was declared."""
    return _MISSHAPEN.search(detail) is not None


def missing_operator(failure: RunFailure) -> tuple[str, int] | None:
    """Return the operator and version that the runtime lacks, if that is why it failed."""
    found = _MISSING.search(failure.detail)
    return None if found is None else (found.group(1), int(found.group(2)))


def _owner(sizes: Sequence[int], number: int) -> int | None:
    """Return which of consecutive ranges a number lies in."""
    at = bisect_right(list(accumulate(sizes)), number)
    return at if at < len(sizes) else None


def _results(
    tensors: Sequence[Tensor], outputs: NDArray[np.generic]
) -> Iterator[tuple[Tensor, NDArray[np.uint8]]]:
    """Yield each tensor with its bytes, (rows, bytes): a wrong shape may be any."""
    raw = np.ascontiguousarray(outputs).reshape(len(outputs), -1).view(np.uint8)
    start = 0
    for tensor in tensors:
        stop = start + tensor_bytes(tensor)
        yield tensor, raw[:, start:stop]
        start = stop


def _answer(model: PosedModel, results: Sequence[tuple[Tensor, NDArray[np.uint8]]]) -> ModelAnswer:
    for at, (tensor, _) in zip(model.graph.outputs, results, strict=True):
        declared = model.graph.values[at]
        if (tensor.shape, tensor.dtype) != (declared.shape, declared.dtype):
            detail = (
                f"the result is {tensor.dtype} {tensor.shape}, and should be"
                f" {declared.dtype} {declared.shape}"
            )
            return ModelAnswer(failure=RunFailure("misshapen", detail))
    return ModelAnswer(
        tuple(
            np.ascontiguousarray(values[: model.rows])
            .view(tensor.dtype)
            .reshape(model.rows, *tensor.shape)
            for tensor, values in results
        )
    )
