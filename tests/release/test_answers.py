"""What a device answers when it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome
from edgeflare.core.seeds import Seeds
from edgeflare.release.answers import ask_arms

SEEDS = Seeds(np.arange(6.0), None, tuple("abcdef"))


def test_answers_that_time_cuts_off_are_held_against_those_to_the_same_inputs() -> None:
    asked_again: list[object] = []

    def evaluate(
        inputs: Sequence[Any], _ids: object, arms: Sequence[Arm], stopped: Callable[[], bool]
    ) -> Iterator[EvaluatedQuery]:
        for each in inputs:
            if stopped():
                return
            asked_again.extend([each] if arms == (Arm.DEVICE,) else [])
            yield EvaluatedQuery(Outcome({}), {Arm.DEVICE: np.float64(each).tobytes()}, 0.0)

    panel = SimpleNamespace(arms=(Arm.TWIN, Arm.DEVICE))
    fake = cast(OpenedPair, SimpleNamespace(seeds=SEEDS, panel=panel, evaluate=evaluate))
    (taken,) = ask_arms(fake, lambda: len(asked_again) == 4)
    assert asked_again == [5.0, 4.0, 3.0, 2.0]
    assert [before.raw for before, _ in taken.repeated] == [now.raw for _, now in taken.repeated]
    assert len(taken.repeated) == 4
