"""The tasks that are installed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from edgeflare.core.task import Task
from edgeflare.installed_classes import InstalledClasses

TASKS = InstalledClasses[Task]("edgeflare.tasks", "task", Task)


_NO_KEYS: Mapping[str, Any] = MappingProxyType({})


def find_task(name: str, keys: Mapping[str, Any] = _NO_KEYS) -> Task:
    """Return the task of that name.

    Args:
        name: as users write it.
        keys: keyword arguments of its constructor, of the types that it annotates.

    Raises:
        UserError: there is none, or an installed package's task cannot be used, or the value of a
            key is out of its range.

    """
    return TASKS.find(name)(**keys)
