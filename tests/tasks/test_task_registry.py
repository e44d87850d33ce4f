from __future__ import annotations

from edgeflare.tasks.task_registry import TASKS, find_task


def test_tasks_are_found_by_name() -> None:
    assert TASKS.names() == ("classification",)
    for name in TASKS.names():
        assert find_task(name).name == name
