"""Which kernel sets decide alike, and which stands alone: laws, and cases by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.matrix.agreement import InputAgreement, agreements

NAMES = ("xnnpack", "builtin", "reference", "gpu", "micro")
KERNEL = Goal(find=Find.KERNEL)


def answer(label: int | None, *, tied: bool = False, failure: Failure | None = None) -> Answer:
    probabilities = np.zeros(3)
    if label is not None:
        probabilities[:] = 0.1
        probabilities[label] = 0.8
    return Answer(label, tied, probabilities, probabilities, failure)


def agreement(
    twin: int, devices: Sequence[Answer], goal: Goal = KERNEL
) -> tuple[InputAgreement, tuple[str, ...]]:
    names = NAMES[: len(devices)]
    outcomes = {
        name: [Outcome({Arm.TWIN: answer(twin), Arm.DEVICE: device})]
        for name, device in zip(names, devices, strict=True)
    }
    (found,) = agreements(outcomes, [goal])
    return found, names


@settings(deadline=None)
@given(st.integers(0, 2), st.lists(st.integers(0, 2), min_size=2, max_size=5))
def test_who_stands_alone_differs_from_all_others_and_they_agree(
    twin: int, labels: list[int]
) -> None:
    found, names = agreement(twin, [answer(label) for label in labels])
    by_name = dict(zip(names, labels, strict=True))
    assert set(found.deviating) == {name for name in names if by_name[name] != twin}
    others = [label for name, label in by_name.items() if name != found.alone]
    if found.alone is not None:
        assert len(set(others)) == 1
        assert by_name[found.alone] not in others
        assert len(names) >= 3
    elif len(names) >= 3:
        assert not any(labels.count(one) == 1 and len(set(labels)) == 2 for one in labels)
    assert set(found.apart) == {
        (one, other)
        for at, one in enumerate(names)
        for other in names[at + 1 :]
        if by_name[one] != by_name[other]
    }


def test_each_input_is_judged_by_its_own_goal() -> None:
    """As of a mutant and of a seed, on which every changed decision counts."""
    tied = {
        name: 2 * [Outcome({Arm.TWIN: answer(0), Arm.DEVICE: answer(label, tied=label == 1)})]
        for name, label in zip(NAMES[:3], (0, 0, 1), strict=True)
    }
    mutant, seed = agreements(tied, [KERNEL, KERNEL.unmutated])
    assert (mutant.deviating, mutant.alone) == ((), None)
    assert (seed.deviating, seed.alone) == ((NAMES[2],), NAMES[2])


@pytest.mark.parametrize(("ties", "alone"), [(False, None), (True, "gpu")])
def test_a_difference_by_a_tie_counts_only_where_ties_do(ties: bool, alone: str | None) -> None:
    devices = [answer(0), answer(0), answer(0), answer(1, tied=True)]
    found, _ = agreement(0, devices, Goal(find=Find.KERNEL, ties=ties))
    assert found.alone == alone
    assert found.deviating == ((alone,) if alone else ())


def test_a_kernel_set_that_alone_crashes_stands_alone() -> None:
    devices = [answer(0), answer(None, failure="crash"), answer(0)]
    found, _ = agreement(0, devices)
    assert (found.alone, found.deviating) == ("builtin", ("builtin",))
