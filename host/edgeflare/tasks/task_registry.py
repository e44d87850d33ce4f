"""The tasks that are installed, by name."""

from __future__ import annotations

from edgeflare.core.task import Task
from edgeflare.installed_classes import InstalledClasses

TASKS = InstalledClasses[Task]("edgeflare.tasks", "task", Task)


def find_task(name: str) -> Task:
    """Return the task of that name.

    Raises:
        UserError: there is none, or an installed package's task cannot be used.

    """
    return TASKS.find(name)()
