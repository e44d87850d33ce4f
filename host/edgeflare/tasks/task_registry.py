"""The tasks that are installed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from edgeflare.class_registry import InstalledClasses
from edgeflare.core.task import Task
from edgeflare.keyword_settings import constructed
from edgeflare.record.json_types import JsonValue

TASKS = InstalledClasses[Task]("edgeflare.tasks", "task", Task)

_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


def find_task(
    name: str, settings: Mapping[str, JsonValue] = _NOTHING, where: str = "[task]"
) -> Task:
    """Return the task of that name.

    Args:
        name: as users write it.
        settings: what `pair.toml` says of it, by the names of its constructor's arguments.
        where: they stand, for messages.

    Raises:
        UserError: there is none, or an installed package's task cannot be used, or the settings
            are not what it takes.

    """
    return constructed(TASKS.find(name), settings, where)
