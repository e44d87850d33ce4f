"""Of models that die together the one is blamed that makes others die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.corruption_search import MOST_TRIALS, Blame, blamed
from edgeflare.conform.execution.device_opener import DeviceOpener
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_shipped_profile
from posed_models import mixed_models, posed, unary

ArmOf = Callable[..., PackingArm]

MARKED = posed(unary("FLOOR"))


@st.composite
def corruptions(draw: st.DrawFn) -> tuple[int, int, set[int]]:
    """Draw the number of models, the one that corrupts, and which of others that kills."""
    count = draw(st.integers(8, 200))
    guilty = draw(st.integers(0, count - 2))
    kills = {draw(st.integers(guilty + 1, count - 1)), draw(st.integers(0, count - 1))}
    return count, guilty, kills - {guilty}


@given(corruptions())
def test_the_model_that_corrupts_is_blamed_whoever_dies_of_it(
    corruption: tuple[int, int, set[int]],
) -> None:
    count, guilty, kills = corruption
    trials = 0

    def dies(models: Sequence[int]) -> bool:
        nonlocal trials
        trials += 1
        return guilty in models and bool(kills & set(models[models.index(guilty) :]))

    blame = blamed(range(count), range(count), dies)
    assert blame is not None
    assert blame.place == guilty
    assert blame.corrupts
    assert set(blame.others) <= kills
    # A second one that dies is needed for a proof.
    assert blame.certain == bool(kills - set(blame.others))
    assert trials <= MOST_TRIALS / 2


@given(st.integers(3, 200), st.data())
def test_what_dies_itself_behind_others_corrupts_nothing(count: int, data: st.DataObject) -> None:
    victim = data.draw(st.integers(1, count - 1))

    def dies(models: Sequence[int]) -> bool:
        return victim in models[1:]

    blame = blamed(range(count), range(count), dies)
    assert blame is not None
    assert (blame.place, blame.corrupts, blame.certain) == (victim, False, True)


@given(st.sets(st.integers(0, 99), min_size=3, max_size=4))
def test_models_that_die_only_all_together_are_found(least: set[int]) -> None:
    blame = blamed(range(100), range(100), least.issubset)
    assert blame == Blame(min(least), tuple(sorted(least)[1:]), corrupts=True, certain=False)


def test_nobody_is_blamed_for_what_does_not_happen_again() -> None:
    assert blamed(range(20), range(20), lambda _: False) is None


def test_a_search_that_does_not_end_is_given_up() -> None:
    asked: list[Sequence[int]] = []

    def dies(models: Sequence[int]) -> bool:
        asked.append(models)
        return len(models) > 150

    assert blamed(range(200), range(200), dies) is None
    assert len(asked) == MOST_TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_memory_that_is_overwritten_is_traced_to_the_model_that_does_it(
    arm_of: ArmOf, seed: int
) -> None:
    """The worker dies in the next model, or in the next of some operator."""
    rng = np.random.default_rng(seed)
    models = mixed_models(20, seed)
    at = int(rng.integers(0, 15))
    models[at] = MARKED
    victim = ("", " CONV_2D", " NEG")[seed % 3]
    arm = arm_of(FLOOR=f"overwrite{victim}")
    answers = arm.run(models)
    assert [place for place, one in enumerate(answers) if one.corrupts] == [at]
    assert [place for place, one in enumerate(answers) if one.failure] == [at]
    failure = answers[at].failure
    assert failure is not None
    assert (failure.kind, failure.detail) == (
        "crash",
        "models that run after it in the same process die (SIGSEGV)",
    )
    (alone,) = arm.run_alone([MARKED], [answers[at]])
    assert alone.corrupts


@pytest.mark.slow
def test_what_is_like_a_model_that_corrupts_is_tried_with_witnesses(arm_of: ArmOf) -> None:
    arm = arm_of(FLOOR="overwrite", CEIL="crash")
    models = [*mixed_models(8), MARKED, *mixed_models(3)]
    assert arm.run(models)[8].corrupts
    # Also where nothing runs after it that it could kill, as when it is made smaller.
    spent = arm.processes
    answers = arm.run([posed(unary("FLOOR", (1,))), posed(unary("CEIL"))])
    assert [one.corrupts for one in answers] == [True, False]
    assert arm.processes == spent + 3


@pytest.mark.slow
def test_a_model_that_dies_beside_others_is_told_from_one_that_kills(arm_of: ArmOf) -> None:
    models = mixed_models(24)
    models[13] = MARKED
    answers = arm_of(FLOOR="crash beside").run(models)
    assert [place for place, one in enumerate(answers) if one.failure] == [13]
    assert (answers[13].corrupts, answers[13].neighbours) == (False, True)


@pytest.mark.slow
def test_on_a_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = " ".join(f"'{part}'" for part in deadly_launcher({"FLOOR": "overwrite"}))
    monkeypatch.setenv("EDGEFLARE_AGENT_LAUNCHER", launcher)
    models = mixed_models(24)
    models[7] = MARKED
    with (
        connect(find_shipped_profile("emulated-builtin")) as device,
        closing(PackingArm(DeviceOpener(device))) as arm,
    ):
        answers = arm.run(models)
    assert [place for place, one in enumerate(answers) if one.failure or one.corrupts] == [7]
