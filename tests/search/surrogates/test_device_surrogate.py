"""Laws of what stands in for the device, whatever the arms answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.strategy import Donor
from edgeflare.search.surrogates.device_surrogate import (
    EnsembleForDevice,
    NearTies,
    QueryBackoff,
    Surrogate,
    TwinThenNearTies,
    UnanimousTwin,
    surrogate,
)

CLASSES = 3
MEMBERS = ("builtin", "reference")
FAILURES: tuple[Failure, ...] = ("crash", "hang", "invalid-output")


def answered(*logits: float) -> Answer:
    scores = np.array(logits)
    powers = np.exp(scores - scores.max())
    second, first = np.sort(scores)[-2:]
    return Answer(int(scores.argmax()), bool(first == second), powers / powers.sum(), scores)


def failed(failure: Failure) -> Answer:
    nothing = np.zeros(CLASSES)
    return Answer(None, False, nothing, nothing, failure)


# Multiples of 1/16 so that near-ties and ties are as likely as they are with 8 bits.
LOGITS = st.lists(st.integers(-32, 32).map(lambda n: n / 16), min_size=CLASSES, max_size=CLASSES)
ANSWERS = LOGITS.map(lambda logits: answered(*logits))
ANYTHING = st.one_of(ANSWERS, ANSWERS, ANSWERS, st.sampled_from(FAILURES).map(failed))
GOALS = st.builds(Goal, st.sampled_from(Find), st.booleans(), st.sampled_from([0.0, 0.05]))


def outcomes(answers: st.SearchStrategy[Answer] = ANYTHING) -> st.SearchStrategy[Outcome]:
    """Outcomes of the host: no device, and both members."""
    return st.builds(
        lambda original, twin, builtin, reference: Outcome(
            {Arm.ORIGINAL: original, Arm.TWIN: twin},
            {"builtin": builtin, "reference": reference},
        ),
        *[answers] * 4,
    )


def told(stands_in: Surrogate, outcome: Outcome) -> Outcome:
    """What the surrogate is told of an outcome: the answers that it asks for, and no others."""
    return Outcome(
        {arm: outcome[arm] for arm in stands_in.arms},
        {name: outcome.members[name] for name in stands_in.kernels},
    )


def on_device(outcome: Outcome, answer: Answer) -> Outcome:
    return Outcome({**outcome.answers, Arm.DEVICE: answer}, outcome.members)


@given(GOALS, st.sampled_from([(), MEMBERS[:1], MEMBERS]), st.booleans(), outcomes(), outcomes())
def test_what_it_asks_for_is_all_that_it_reads_and_never_the_device(
    goal: Goal, ensemble: tuple[str, ...], has_original: bool, seed: Outcome, outcome: Outcome
) -> None:
    if not has_original and goal.find is Find.KERNEL:
        seed = replace(seed, answers={Arm.TWIN: seed[Arm.TWIN]})
    stands_in = surrogate(goal, ensemble, seed)
    assert Arm.DEVICE not in stands_in.arms
    assert Arm.TWIN in stands_in.arms
    assert (Arm.ORIGINAL in stands_in.arms) <= (Arm.ORIGINAL in seed.answers)
    assert stands_in.kernels == (() if goal.find is Find.ANY else ensemble)
    known = told(stands_in, outcome)
    known_answers = [*known.answers.values(), *known.members.values()]
    assert all(any(side is one for one in known_answers) for side in stands_in.sides(known))
    assert isinstance(stands_in.doubts(known), bool)


@given(st.sampled_from([Find.ANY, Find.COMPRESSION]), st.booleans(), outcomes())
def test_the_device_is_asked_just_where_it_would_be_a_finding_if_it_did_as_the_twin(
    find: Find, ties: bool, outcome: Outcome
) -> None:
    goal = Goal(find, ties)
    stands_in = surrogate(goal, (), outcome)
    as_the_twin = on_device(outcome, outcome[Arm.TWIN])
    for _ in range(TwinThenNearTies.LASTED):
        assert stands_in.doubts(outcome) == (goal.met(as_the_twin) is not None)


TWIN = answered(1.04, 1.0, 0.0)
NEAR_TIE = Outcome({Arm.ORIGINAL: answered(1.2, 1.0, 0.0), Arm.TWIN: TWIN})
OTHER = on_device(NEAR_TIE, answered(1.1, 1.0, 0.0))
ALIKE = on_device(NEAR_TIE, TWIN)


def lasting(goal: Goal, looks: int, *others: Outcome) -> Surrogate:
    """A surrogate that has looked so often and asked for nothing."""
    image = np.zeros((1, 1, 1), np.uint8)
    stands_in = surrogate(goal, (), ALIKE, [Donor(image, outcome) for outcome in others])
    assert not any(stands_in.doubts(NEAR_TIE) for _ in range(looks))
    return stands_in


def test_near_ties_count_once_a_search_has_lasted_the_sooner_if_the_device_is_another() -> None:
    assert lasting(Goal(), TwinThenNearTies.LASTED, ALIKE, OTHER).doubts(NEAR_TIE)
    assert lasting(Goal(), TwinThenNearTies.LASTED_ALIKE, ALIKE, ALIKE).doubts(NEAR_TIE)
    assert lasting(Goal(), TwinThenNearTies.LASTED_ALIKE).doubts(NEAR_TIE)


@given(outcomes(ANSWERS))
def test_the_device_confirms_what_all_members_say_with_the_twin(outcome: Outcome) -> None:
    goal = Goal(Find.COMPRESSION)
    deviates = surrogate(goal, (), outcome).doubts(outcome)
    alike = Outcome(outcome.answers, dict.fromkeys(MEMBERS, outcome[Arm.TWIN]))
    assert surrogate(goal, MEMBERS, outcome).doubts(alike) == deviates
    # One that sides with the original is enough to pass a deviation over, but not for ever.
    split = Outcome(outcome.answers, {**alike.members, "reference": outcome[Arm.ORIGINAL]})
    stands_in = surrogate(goal, MEMBERS, outcome)
    asked = [stands_in.doubts(split) for _ in range(UnanimousTwin.MOST_PASSED_OVER + 1)]
    assert asked == [False] * UnanimousTwin.MOST_PASSED_OVER + [deviates]


def test_near_ties_never_count_for_what_compression_changed() -> None:
    lasting(Goal(Find.COMPRESSION), 2 * TwinThenNearTies.LASTED_ALIKE, OTHER)


def test_near_ties_count_only_where_the_other_side_would_be_strong_enough() -> None:
    stands_in = lasting(Goal(min_strength=0.2), TwinThenNearTies.LASTED_ALIKE)
    assert not stands_in.doubts(NEAR_TIE)
    sure = replace(NEAR_TIE, answers={**NEAR_TIE.answers, Arm.ORIGINAL: answered(2.0, 1.0, 0.0)})
    assert stands_in.doubts(sure)


def test_a_device_that_answers_as_its_twin_does_is_asked_more_and_more_seldom() -> None:
    stands_in = lasting(Goal(), TwinThenNearTies.LASTED_ALIKE)
    asked = []
    for n in range(200):
        if stands_in.doubts(NEAR_TIE):
            asked.append(n)
            stands_in.told(ALIKE)
    most = QueryBackoff.MOST_PASSED_OVER + 1
    assert np.diff(asked).tolist() == [2, 4, 8, 16] + [most] * (len(asked) - 5)
    assert len(asked) > 6
    while not stands_in.doubts(NEAR_TIE):
        pass
    stands_in.told(OTHER)
    assert stands_in.doubts(NEAR_TIE)


@given(outcomes())
def test_an_ensemble_never_passes_over_what_a_member_foretells_for_ever(outcome: Outcome) -> None:
    goal = Goal(Find.KERNEL)
    stands_in = surrogate(goal, MEMBERS, outcome)
    twin = outcome[Arm.TWIN]
    members = [outcome.members[name] for name in MEMBERS]
    other = next((one for one in members if one.label != twin.label), twin)
    foretold = goal.met(Outcome({Arm.TWIN: twin, Arm.DEVICE: other})) is not None
    asked = [stands_in.doubts(outcome) for _ in range(EnsembleForDevice.MOST_PASSED_OVER + 1)]
    assert any(asked) == foretold


@given(outcomes(ANSWERS))
def test_an_ensemble_follows_the_original_s_boundary_or_its_own_without_one(
    outcome: Outcome,
) -> None:
    original, twin = outcome[Arm.ORIGINAL], outcome[Arm.TWIN]
    assert surrogate(Goal(Find.KERNEL), MEMBERS, outcome).sides(outcome) == (original, twin)
    alone = replace(outcome, answers={Arm.TWIN: twin})
    first, second = surrogate(Goal(Find.KERNEL), MEMBERS, alone).sides(alone)
    assert first is twin
    assert any(second is one for one in outcome.members.values())
    if any(one.label != twin.label for one in outcome.members.values()):
        assert second.label != twin.label


@given(outcomes(ANSWERS))
def test_members_that_agree_spare_the_device(outcome: Outcome) -> None:
    twin = outcome[Arm.TWIN]
    agreeing = Outcome(outcome.answers, dict.fromkeys(MEMBERS, twin))
    stands_in = surrogate(Goal(Find.KERNEL), MEMBERS, outcome)
    assert not stands_in.doubts(agreeing)


@pytest.mark.parametrize("witness", [True, False])
def test_an_ensemble_that_was_wrong_too_often_is_joined_by_near_ties(witness: bool) -> None:
    near_tie = unforeseen(witness=witness)
    twin = near_tie[Arm.TWIN]
    stands_in = surrogate(Goal(Find.KERNEL), MEMBERS, near_tie)
    for _ in range(EnsembleForDevice.PATIENCE):
        assert not stands_in.doubts(near_tie)
        stands_in.told(on_device(near_tie, answered(1.0, 1.1, 0.0)))
    assert stands_in.doubts(near_tie)
    stands_in.told(on_device(near_tie, answered(1.1, twin.scores[0], 0.0)))
    assert not stands_in.doubts(near_tie)


@pytest.mark.parametrize("witness", [True, False])
def test_an_ensemble_that_says_nothing_for_long_is_joined_by_near_ties(witness: bool) -> None:
    near_tie = unforeseen(witness=witness)
    stands_in = surrogate(Goal(Find.KERNEL), MEMBERS, near_tie)
    asked = [stands_in.doubts(near_tie) for _ in range(EnsembleForDevice.SILENCE)]
    assert asked.index(True) == EnsembleForDevice.SILENCE - 1


def unforeseen(*, witness: bool) -> Outcome:
    """A near-tie of the twin about which all members agree with it."""
    twin = answered(1.0, 1.04, 0.0)
    arms = {Arm.TWIN: twin, **({Arm.ORIGINAL: answered(1.5, 1.0, 0.0)} if witness else {})}
    return Outcome(arms, dict.fromkeys(MEMBERS, twin))


@given(outcomes())
def test_near_ties_are_near_and_no_ties(outcome: Outcome) -> None:
    twin = outcome[Arm.TWIN]
    doubted = NearTies(Goal(Find.KERNEL)).doubts(outcome)
    if twin.failure is not None:
        assert doubted
    elif doubted:
        assert not twin.tied
        second, first = np.sort(twin.probabilities)[-2:]
        assert 0.0 < first - second < 0.5


@given(outcomes(ANSWERS))
def test_the_original_as_witness_spares_near_ties_and_adds_none(outcome: Outcome) -> None:
    goal = Goal(Find.KERNEL)
    witnessed = surrogate(goal, (), outcome)
    assert not witnessed.doubts(outcome) or NearTies(goal).doubts(outcome)
    # An original that is as sure of the twin's label as of any is no reason to doubt it.
    siding = Outcome({**outcome.answers, Arm.ORIGINAL: outcome[Arm.TWIN]})
    assert not witnessed.doubts(siding)


@given(GOALS, st.sampled_from([(), MEMBERS]), outcomes(), st.permutations(range(CLASSES)))
def test_the_order_of_the_classes_does_not_matter(
    goal: Goal, ensemble: tuple[str, ...], outcome: Outcome, order: list[int]
) -> None:
    known = [*outcome.answers.values(), *outcome.members.values()]
    assume(not any(answer.tied for answer in known))  # a tie's label is the first of equals
    renamed = Outcome(
        {arm: _reordered(answer, order) for arm, answer in outcome.answers.items()},
        {name: _reordered(answer, order) for name, answer in outcome.members.items()},
    )
    assert surrogate(goal, ensemble, outcome).doubts(outcome) == (
        surrogate(goal, ensemble, renamed).doubts(renamed)
    )


def _reordered(answer: Answer, order: list[int]) -> Answer:
    if answer.failure is not None:
        return answer
    scores = answer.scores[order]
    return replace(
        answer,
        label=int(scores.argmax()),
        probabilities=answer.probabilities[order],
        scores=scores,
    )
