from __future__ import annotations

from edgeflare.tasks.task_registry import find_task, task_names


def test_tasks_are_found_by_name() -> None:
    assert task_names() == ("classification",)
    for name in task_names():
        assert find_task(name).name == name
