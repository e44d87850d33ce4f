"""What a survey would take, from a few of its items."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgeflare.core.query import Arm
from edgeflare.survey.survey_look import look_at
from edgeflare.survey.survey_run import Survey


class _Items:
    """A thousand items, of which each is its own number."""

    def __len__(self) -> int:
        return 1000

    def make(self, item: int) -> int:
        return item

    input_of = make


@pytest.mark.parametrize(("budget", "most"), [(None, 1000), (400, 400), (4000, 1000)])
def test_times_are_those_of_an_item_over_all_items(
    monkeypatch: pytest.MonkeyPatch, budget: int | None, most: int
) -> None:
    clock = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    asked: list[tuple[int, tuple[Arm, ...]]] = []

    def evaluate(inputs: Sequence[int], _: object, arms: tuple[Arm, ...]) -> Iterator[None]:
        asked.append((len(inputs), arms))
        for _item in inputs:
            clock[0] += 0.25 if Arm.DEVICE in arms else 0.5
            yield None

    panel = SimpleNamespace(arms=(Arm.ORIGINAL, Arm.DEVICE))
    opened = SimpleNamespace(panel=panel, evaluate=evaluate)
    plan = SimpleNamespace(device_queries=budget, precision=None, confidence=0.95)
    survey: Any = SimpleNamespace(items=_Items(), opened=opened, plan=plan)
    look = look_at(cast(Survey, survey))
    assert asked == [(96, (Arm.ORIGINAL,)), (16, (Arm.DEVICE,))]
    assert (look.host_seconds, look.device_seconds) == (500.0, 0.25)
    assert (look.items, look.most_queries, look.plain_queries) == (1000, most, None)
