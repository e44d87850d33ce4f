"""What looks wrong in the answers on the seeds: of the host's models, and of the device."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome
from edgeflare.run.seed_warnings import seed_warnings
from edgeflare.tasks.classification import Classification, softmax

CLASSES = 4


def answer(scores: list[float]) -> Answer:
    values = np.array(scores)
    tied = bool((values == values.max()).sum() > 1)
    return Answer(int(values.argmax()), tied, softmax(values[None])[0], values)


def varied(count: int) -> list[Answer]:
    return [answer(np.roll([4.0, 1.0, 0.5, 0.0], at).tolist()) for at in range(count)]


FLAT = answer(CLASSES * [0.0])


def lines(twin: list[Answer], device: list[Answer]) -> list[str]:
    outcomes = [
        Outcome({Arm.ORIGINAL: original, Arm.TWIN: mine, Arm.DEVICE: its})
        for original, mine, its in zip(varied(len(twin)), twin, device, strict=True)
    ]
    return seed_warnings(Classification(), outcomes, None)


def test_of_arms_that_answer_as_trained_ones_do_nothing_is_said() -> None:
    assert lines(varied(20), varied(20)) == []


def test_a_device_whose_answers_are_all_equal_varies_too_little_and_ties() -> None:
    varies, ties = lines(varied(20), 20 * [FLAT])
    assert varies.startswith("the device's outputs hardly vary over the seeds; its twin shows no")
    assert ties.startswith("the device's decision hangs on a tie of equal outputs on 20 of 20")


def test_a_device_that_answers_one_class_varies_too_little() -> None:
    (varies,) = lines(varied(20), 20 * varied(1))
    assert "the device's outputs hardly vary" in varies


def test_what_the_twin_shows_too_is_no_sign_of_the_device() -> None:
    said = lines(20 * [FLAT], 20 * [FLAT])
    assert not any("the device's outputs" in line for line in said)
    assert any("the compressed model's outputs hardly vary" in line for line in said)


@pytest.mark.parametrize(("ties", "said"), [(2, 0), (3, 1)])
def test_more_than_a_tenth_of_ties_is_said(ties: int, said: int) -> None:
    device = [*varied(20)[ties:], *ties * [FLAT]]
    assert len(lines(varied(20), device)) == said
