"""Many models in one file, their operands in one row, and what their answers are in its outputs.

Which models go into one file follows from its limits, and from the odds that they give no answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure, Turns
from edgeflare.conform.graph_file import SIGNATURES, graph_file, signatures_file
from edgeflare.conform.operator_graph import (
    SHARED_NAME,
    GraphValue,
    OperatorGraph,
    Values,
    held_as,
    side_by_side,
)
from edgeflare.core.tensor import Tensor, pack_rows, tensor_bytes
from edgeflare.models.evaluator import Signature, Step
from edgeflare_protos.limits import MOST_NAMED_TENSORS

_KEPT = 16
"""Files. Four arms ask for the same ones at about the same time."""

_files: OrderedDict[Hashable, tuple[object, bytes]] = OrderedDict()
_lock = Lock()

_ECHO = OperatorGraph((GraphValue("uint8", (2,)),), (), (0,), (0,))
"""No operator, and a tensor that is given and answered: a row needs a byte each way."""


@dataclass(frozen=True, slots=True)
class PackInvocation:
    """How the models of a pack are invoked.

    Attributes:
        frames: rows of each model, where all are the frames of one clip; 0 where each is an input.
        turns: how models take turns with their others, which all of them have; None for no turns.

    """

    frames: int = 0
    turns: Turns | None = None


ONE_INVOCATION = PackInvocation()
"""Each row is one invocation."""


class ModelPack:
    """Models side by side in one file. All have the same number of rows.

    Attributes:
        models: the models in the order in which they run.

    """

    def __init__(
        self, models: Sequence[PosedModel], invocation: PackInvocation = ONE_INVOCATION
    ) -> None:
        """Lay models side by side.

        Args:
            models: in the order in which they run.
            invocation: how they are invoked.

        """
        self.models, self._frames, self._turns = tuple(models), invocation.frames, invocation.turns
        self._graphs = [model.graph for model in models]
        self._operands: list[Values] = [operand for model in models for operand in model.operands]
        others = [model.other for model in models if model.other is not None]
        self._other_graphs = [other.graph for other in others]
        self._other_operands = [operand for other in others for operand in other.operands]
        given = any(graph.values[at].size for graph in self._graphs for at in graph.inputs)
        answered = any(graph.values[at].size for graph in self._graphs for at in graph.outputs)
        if not (given and answered):
            rows = max(model.rows for model in models)
            self._graphs.append(_ECHO)
            self._operands.append(np.zeros((rows, 2), np.uint8))
            self._other_graphs.append(_ECHO)
            self._other_operands.append(np.zeros((rows, 2), np.uint8))

    @property
    def content(self) -> bytes:
        """The file."""
        return pack_file(
            self._graphs, () if self._turns is None else self._other_graphs, self._turns
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        """The invocations of which a row consists; none where it is one."""
        if self._turns is None:
            return ()
        if self._turns != "shapes":
            first, second = map(Step, SIGNATURES)
            return (first, second, first)
        both = [side_by_side(graphs) for graphs in (self._graphs, self._other_graphs)]
        own, other = (
            Step(
                "",
                _turned_shapes(whole, whole.inputs, both),
                _turned_shapes(whole, whole.outputs, both),
            )
            for whole in both
        )
        return (own, other, own)

    def rows(self, signature: Signature) -> NDArray[np.generic]:
        """Return the operands of all models: (rows, *row), see `pack_rows`; one row of a clip."""
        if self._frames:
            return pack_rows(signature.inputs, [rows[np.newaxis] for rows in self._operands])
        if self._turns is not None:
            turns = (*self._operands, *self._other_operands, *self._operands)
            return pack_rows(signature.inputs, turns)
        return pack_rows(signature.inputs, self._operands)

    def answers(
        self, signature: Signature, outputs: NDArray[np.generic]
    ) -> tuple[ModelAnswer, ...]:
        """Return the answer of each model.

        Args:
            signature: signature of the loaded file.
            outputs: (rows, size of one row), see `RawBatch`.

        """
        results: Iterator[_Result]
        results = iter(_results(signature.outputs, outputs))
        if self._frames:
            results = (_by_frame(*result) for result in results)
        if self._turns is not None:
            return self._turned(results)
        return tuple(
            _answer(model, [next(results) for _ in model.graph.outputs]) for model in self.models
        )

    def _turned(self, results: Iterator[_Result]) -> tuple[ModelAnswer, ...]:
        """Return the answer of each model, with those of its turns one behind the other."""
        turns: list[list[ModelAnswer]] = [[] for _ in self.models]
        echoed = len(self._graphs) > len(self.models)
        for own in (True, False, True):
            for model, answers in zip(self.models, turns, strict=True):
                now = model if own or model.other is None else model.other
                answers.append(_answer(now, [next(results) for _ in now.graph.outputs]))
            if echoed:
                next(results)
        return tuple(map(_joined, turns))


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


def _turned_shapes(
    whole: OperatorGraph, tensors: Sequence[int], both: Sequence[OperatorGraph]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors, by name, that are not the same in both graphs."""
    first, second = both
    return {
        f"t{at}": whole.values[at].shape
        for at in tensors
        if first.values[at].shape != second.values[at].shape
    }


_Result = tuple[Tensor, NDArray[np.uint8]]


def _joined(turns: Sequence[ModelAnswer]) -> ModelAnswer:
    """Return the answers of several turns as one, which fails as the first does that fails."""
    failed = next((answer for answer in turns if answer.failure is not None), None)
    return failed or ModelAnswer(tuple(values for answer in turns for values in answer.outputs))


def _by_frame(tensor: Tensor, raw: NDArray[np.uint8]) -> tuple[Tensor, NDArray[np.uint8]]:
    """Return a clip's result as that of one frame, with a row for each."""
    frames, *shape = tensor.shape
    return replace(tensor, shape=tuple(shape)), raw.reshape(frames, -1)


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


def pack_file(
    graphs: Sequence[OperatorGraph],
    others: Sequence[OperatorGraph] = (),
    turns: Turns | None = None,
) -> bytes:
    """Return the file of graphs side by side; to write one takes longer than to run it.

    Args:
        graphs: the same objects are taken for the same graphs.
        others: those that take turns with them, in their order.
        turns: how they do; None where there are none.

    """
    key = (turns, *map(id, graphs), *map(id, others))
    # Who waits here waits for the file that it wants, or for the interpreter's lock.
    with _lock:
        if key in _files:
            return _files[key][1]
        whole = side_by_side(graphs)
        if turns in ("signatures", "parts"):
            content = signatures_file([whole, side_by_side(others)])
        else:
            content = graph_file(whole, side_by_side(others) if turns else None)
        # The graphs are kept, too, so that no others get their identities.
        _files[key] = (*graphs, *others), content
        if len(_files) > _KEPT:
            _files.popitem(last=False)
        return content


_SUSPICIOUS = 0.01
"""Odds from which on a model is kept apart from ordinary ones, which it would stop."""

_MOST_ODDS = 0.7
"""Sum of the odds of a file's models. Above it, fewer at a time need fewer processes to find
those that fail (group testing: files of 0.69 ÷ odds)."""


@dataclass(frozen=True, slots=True)
class PackLimits:
    """How large a file may be.

    Attributes:
        models: most models in a file. A process takes far longer to start than hundreds of them to
            run.
        tensors: most tensors of all models, each of which costs some microseconds for each row.
        bytes: most bytes of all tensors, constants included: a row ends long before it counts as
            hanging.
        row_bytes: most bytes of all inputs, and of all outputs: what one message carries.
        named: most inputs, and most outputs, of models that take turns, each of which a message may
            name.

    """

    models: int = 400
    tensors: int = 8000
    bytes: int = 4 << 20
    row_bytes: int = 16 << 20
    named: int = MOST_NAMED_TENSORS


@dataclass(frozen=True, slots=True)
class _Size:
    """What models take of the limits; odds are those of any of them giving no answer."""

    models: int = 0
    tensors: int = 0
    bytes: int = 0
    given: int = 0
    answered: int = 0
    odds: float = 0.0
    named: int = 0

    def with_(self, other: _Size) -> _Size:
        return _Size(
            self.models + other.models,
            self.tensors + other.tensors,
            self.bytes + other.bytes,
            self.given + other.given,
            self.answered + other.answered,
            self.odds + other.odds,
            self.named + other.named,
        )

    def within(self, limits: PackLimits) -> bool:
        return (
            self.models <= limits.models
            and self.tensors <= limits.tensors
            and self.bytes <= limits.bytes
            and max(self.given, self.answered) <= limits.row_bytes
            and self.odds <= _MOST_ODDS
            and self.named <= limits.named
        )


def next_group(
    models: Sequence[PosedModel],
    places: Sequence[int],
    odds: Callable[[int], float],
    limits: PackLimits,
) -> list[int]:
    """Return the places of the models that go into one file next, ordinary ones first.

    Args:
        models: all models.
        places: those of the models that are left, at least one.
        odds: how likely the model of a place is to give no answer.
        limits: limits of one file; a model beyond them goes alone.

    Returns:
        At least one place.

    """
    ordinary = [at for at in places if odds(at) <= _SUSPICIOUS] or list(places)
    reloads = _reloads(models[ordinary[0]])
    group: list[int] = []
    size = _Size()
    for at in ordinary:
        if _reloads(models[at]) != reloads:
            continue
        size = size.with_(_size(models[at], odds(at)))
        if group and not size.within(limits):
            break
        group.append(at)
    return group


def _reloads(model: PosedModel) -> bool:
    """Return whether a file with a model is loaded anew for each row, as one with resources is.

    Beside others it would be so for them as well, and none would find what it has left.
    """
    return any(SHARED_NAME in node.options for node in model.graph.nodes)


def model_bytes(model: PosedModel) -> int:
    """Return the size of all tensors of a model."""
    own = _bytes(model, range(len(model.graph.values)))
    return own if model.other is None else own + model_bytes(model.other)


def _size(model: PosedModel, odds: float) -> _Size:
    graph = model.graph
    given, answered = _bytes(model, graph.inputs), _bytes(model, graph.outputs)
    named = 0
    if model.other is not None:
        other = model.other.graph
        given = 2 * given + _bytes(model.other, other.inputs)
        answered = 2 * answered + _bytes(model.other, other.outputs)
        interfaces = (graph.inputs, graph.outputs, other.inputs, other.outputs)
        named = max(map(len, interfaces))
    return _Size(1, len(graph.values), model_bytes(model), given, answered, odds, named)


def _bytes(model: PosedModel, tensors: Sequence[int]) -> int:
    values = model.graph.values
    return sum(values[at].size * held_as(values[at].dtype).itemsize for at in tensors)
