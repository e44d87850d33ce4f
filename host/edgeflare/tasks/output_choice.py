"""Which output of a model a task reads, its real values in a batch, and which rows hold none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Failure
from edgeflare.core.task import ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, unpack_tensor
from edgeflare.errors import UserError
from edgeflare.tasks.task_registry import TASKS

_SHAPE = re.compile(r"[\[(]?\s*(\d+(?:\s*[x,]\s*\d+)*)\s*,?\s*[\])]?")
"""A shape as users write it, such as 1x10, (1, 10) or [1, 10]."""

_CHOOSING = ("ARG_MAX", "ARG_MIN", "TOPK_V2")
"""Operators that leave of scores which are the largest or smallest."""

_KEEPING_CHOICES = ("CAST", "EXPAND_DIMS", "RESHAPE", "SQUEEZE")
"""Operators that models have behind these."""


def chosen_output(task: type[Task], model: ModelOutputs, output: str = "") -> int:
    """Return the position in a row of the output that a task reads.

    Args:
        task: what reads it.
        model: the model.
        output: name of the output, or its shape with or without the frames, such as "1x10"; several
            of them with "|" between, of which the first that the model has is taken. Where it is
            empty, the only output that is no state and fits the task.

    Raises:
        UserError: there is no such output, or it does not fit, or several would.

    """
    if output:
        at = named_output(model, output)
        if not task.fits(one_frame(model.outputs[at], model.frames)):
            raise _unfit(task, model, [at])
        return at
    fitting = fitting_outputs(task, model)
    if len(fitting) > 1:
        known = listed(_frames(model, fitting))
        raise UserError(
            f"{model.name}: the task {task.name} fits {len(fitting)} outputs, {known}: choose one "
            f"by the key output of [task], by its name or its shape, {_example(model, fitting)}"
        )
    return fitting[0]


def fitting_outputs(task: type[Task], model: ModelOutputs) -> list[int]:
    """Return the positions of the outputs that a task fits, without those that only feed a state.

    Raises:
        UserError: it fits none.

    """
    known = open_outputs(model)
    fitting = [at for at in known if task.fits(one_frame(model.outputs[at], model.frames))]
    if not fitting:
        raise _unfit(task, model, known)
    return fitting


def open_outputs(model: ModelOutputs) -> list[int]:
    """Return the positions of the outputs that are no state."""
    return [
        at
        for at, tensor in enumerate(model.outputs)
        if at >= model.inputs and tensor.name not in model.state
    ]


def one_frame(tensor: Tensor, frames: int) -> Tensor:
    """Return an output as one frame has it: without the dimension of the frames."""
    return replace(tensor, shape=tensor.shape[1:]) if frames else tensor


def is_numeric(tensor: Tensor) -> bool:
    """Whether an output holds real numbers, at least one."""
    known = tensor.dtype.startswith(("float", "int", "uint"))
    return known and prod(tensor.shape) > 0


def listed(tensors: Sequence[Tensor]) -> str:
    """Return outputs as messages list them, such as "'a' (1, 10), 'b' (1, 1)"."""
    return ", ".join(f"{tensor.name!r} {tensor.shape}" for tensor in tensors)


def named_output(model: ModelOutputs, output: str) -> int:
    """Return the position in a row of the output that a user names; see `chosen_output`.

    Raises:
        UserError: there is no such output, or there are several.

    """
    places = range(model.inputs, len(model.outputs))
    for wanted in map(str.strip, output.split("|")):
        fitting = [at for at in places if model.outputs[at].name == wanted]
        if not fitting and (shape := _SHAPE.fullmatch(wanted)):
            sizes = tuple(map(int, re.findall(r"\d+", shape[1])))
            fitting = [
                at
                for at in places
                if sizes
                in (model.outputs[at].shape, one_frame(model.outputs[at], model.frames).shape)
            ]
        if len(fitting) > 1:
            raise UserError(
                f"{model.name}: {len(fitting)} outputs are {wanted}: "
                f"{listed(_frames(model, fitting))}; {_way_to_choose(_frames(model, fitting))}"
            )
        if fitting:
            return fitting[0]
    raise UserError(
        f"{model.name} has no output {output!r}: its outputs are "
        f"{listed(_frames(model, list(places)))}; where the two models name it differently, write "
        f"its shape, or both names with | between, {_example(model, list(places))}"
    )


def _way_to_choose(tensors: Sequence[Tensor]) -> str:
    """Return by what outputs are told apart: that of which no two have the same."""
    if len({tensor.name for tensor in tensors}) == len(tensors):
        return "choose one by its name"
    if len({tensor.shape for tensor in tensors}) == len(tensors):
        return "choose one by its shape"
    return "convert the model with a name of its own for each"


def _frames(model: ModelOutputs, places: Sequence[int]) -> list[Tensor]:
    return [one_frame(model.outputs[at], model.frames) for at in places]


def _example(model: ModelOutputs, places: Sequence[int]) -> str:
    shape = one_frame(model.outputs[places[0]], model.frames).shape
    return f'such as output = "{"x".join(map(str, shape))}"'


def _unfit(task: type[Task], model: ModelOutputs, places: Sequence[int]) -> UserError:
    others = ", ".join(map(_with_tasks, _frames(model, places))) or "none"
    return UserError(
        f"{model.name}: the task {task.name} reads {task.expects}, which fits none of the outputs: "
        f"{others}; {_way_out(model)}"
    )


def _way_out(model: ModelOutputs) -> str:
    """Return what to do about a model whose outputs no task fits."""
    makers = {maker.operator: maker for maker in model.makers() if maker is not None}
    for at, name in reversed(list(enumerate(model.operators))):
        if name in _CHOOSING:
            scores = f", {makers[at].reads!r}" if at in makers and makers[at].reads else ""
            return (
                f"the model ends in {name} (operator {at}), which leaves no scores: cut it off, so"
                f" that the output is what {name} reads{scores}, and convert the model so"
            )
        if name not in _KEEPING_CHOICES:
            break
    return "name another task under [task], or convert the model so"


def _with_tasks(tensor: Tensor) -> str:
    tasks = [name for name in TASKS.names() if TASKS.find(name).fits(tensor)]
    told = "" if is_numeric(tensor) else f"{tensor.dtype}, "
    return f"{listed([tensor])} ({told}fits {' or '.join(tasks) or 'no task'})"


TIE_STEPS = 1e-5
"""Steps of a quantized score by which it may miss a threshold and still equals it: its scale is a
float32, which the threshold is not."""

_FAILURES: dict[str, Failure] = {"crash": "crash", "hang": "hang"}


class OutputValues(NamedTuple):
    """What a batch holds of one output.

    Attributes:
        raw: (batch, *shape), the model's own numbers.
        real: (batch, *shape) float64, dequantized; zeros where they are not finite.
        failures: why a row holds no answer, by its position.

    """

    raw: NDArray[np.generic]
    real: NDArray[np.float64]
    failures: dict[int, Failure]


def output_values(
    batch: RawBatch,
    outputs: Sequence[Tensor],
    at: int,
    used: NDArray[np.bool_] | None = None,
) -> OutputValues:
    """Read one output of a batch.

    Values that are not finite, of a wrong shape, or refused by the runtime are an "invalid-output".

    Args:
        batch: the rows.
        outputs: all tensors of a row.
        at: the position of the one that is read.
        used: (batch, n), which of n equal parts of the output, such as places of objects, the model
            has written; the others may hold anything, and are read as zeros. None for all.

    """
    size = len(batch.outputs)
    failures = {
        index: _FAILURES.get(why, "invalid-output") for index, why in batch.failures.items()
    }
    try:
        raw = unpack_tensor(outputs, batch.outputs, at)
    except ValueError:  # another size than that of the outputs
        failures = _invalid(range(size)) | failures
        raw = np.zeros((size, *outputs[at].shape), outputs[at].dtype)
    if used is not None:
        # Before any arithmetic: what stands there need not even be a number that can be converted.
        parts = raw.reshape(*used.shape, -1)
        raw = np.where(used[:, :, None], parts, np.zeros_like(parts)).reshape(raw.shape)
    real = dequantize(raw, outputs[at])
    finite = np.isfinite(real)
    if not finite.all():
        bad = np.flatnonzero(~finite.reshape(size, -1).all(axis=1)).tolist()
        failures = _invalid(bad) | failures
        real[bad] = 0.0
    return OutputValues(raw, real, failures)


def tie_width(tensor: Tensor) -> float:
    """Return by how much a value may miss a threshold and still equals it: 0 unless quantized."""
    return 0.0 if tensor.dtype.startswith("float") else TIE_STEPS * tensor.scale


def _invalid(rows: Iterable[int]) -> dict[int, Failure]:
    return dict.fromkeys(rows, "invalid-output")
