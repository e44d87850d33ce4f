"""The task of a run's outputs, with the settings that the run was made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeflare.core.task import Task
from edgeflare.tasks.task_registry import find_task


def run_task(pair: Mapping[str, Any]) -> Task:
    """Return the task of a run's outputs; of a run that says none it is that of classes.

    Args:
        pair: that of the run's header.

    Raises:
        UserError: there is no such task, or it does not take the settings that the run has.

    """
    outputs = pair.get("outputs")
    settings = pair.get("task_settings", {} if outputs is None else {"outputs": outputs})
    return find_task(pair.get("task", "classification"), settings, "the run's task")
