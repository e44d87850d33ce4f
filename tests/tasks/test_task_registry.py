from __future__ import annotations

import pytest

from edgeflare.errors import UserError
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.task_registry import TASKS, find_task


def test_tasks_are_found_by_name() -> None:
    assert TASKS.names() == (
        *("classification", "detection", "regression", "segmentation", "threshold", "transcript"),
    )
    for name in TASKS.names():
        assert TASKS.find(name).name == name
    assert find_task("classification").name == "classification"


def test_a_task_is_constructed_with_its_keys() -> None:
    assert isinstance(find_task("regression", {"tolerance": 0.5}), Regression)
    with pytest.raises(UserError, match=r"tolerance is 0\.0; expected"):
        find_task("regression", {"tolerance": 0})
