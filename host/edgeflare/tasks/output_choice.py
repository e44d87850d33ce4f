"""Which output of a model a task reads."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from edgeflare.core.task import ModelOutputs, Task
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.task_registry import TASKS


def fitting_output(task: type[Task], model: ModelOutputs) -> int:
    """Return the position in a row of the only output that a task fits.

    Outputs that only feed a state are left out.

    Raises:
        UserError: it fits none of them, or several.

    """
    tensors = [one_frame(tensor, model.frames) for tensor in model.outputs]
    open_ones = [
        at
        for at, tensor in enumerate(tensors)
        if at >= model.inputs and tensor.name not in model.state
    ]
    fitting = [at for at in open_ones if task.fits(tensors[at])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        known = listed([tensors[at] for at in fitting])
        raise UserError(
            f"{model.name}: the task {task.name} fits {len(fitting)} outputs, {known}: name one of "
            "them as the key output of [task], by its name or by its shape"
        )
    others = ", ".join(_with_tasks(tensors[at]) for at in open_ones) or "none"
    raise UserError(
        f"{model.name}: the task {task.name} reads {task.expects}, and fits none of the outputs: "
        f"{others}; name another task under [task], or convert the model so"
    )


def one_frame(tensor: Tensor, frames: int) -> Tensor:
    """Return an output as one frame has it: without the dimension of the frames."""
    return replace(tensor, shape=tensor.shape[1:]) if frames else tensor


def is_numeric(tensor: Tensor) -> bool:
    """Whether an output holds real numbers, at least one."""
    known = tensor.dtype.startswith(("float", "int", "uint"))
    return known and prod(tensor.shape) > 0


def listed(tensors: list[Tensor]) -> str:
    """Return outputs as messages list them, such as "'a' (1, 10), 'b' (1, 1)"."""
    return ", ".join(f"{tensor.name!r} {tensor.shape}" for tensor in tensors)


def _with_tasks(tensor: Tensor) -> str:
    tasks = [name for name in TASKS.names() if TASKS.find(name).fits(tensor)]
    return f"{listed([tensor])} (fits {' or '.join(tasks) or 'no task'})"
