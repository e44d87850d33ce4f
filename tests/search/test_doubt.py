"""Laws of what stands in for the device, whatever the arms answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.search.doubt import EnsembleForDevice, NearTies, Surrogate, surrogate
from edgeflare.search.goal import Find, Goal
from edgeflare.search.outcome import Answer, Arm, Failure, Outcome

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
    assert stands_in.kernels == (ensemble if goal.find is Find.KERNEL else ())
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
    assert stands_in.doubts(outcome) == (goal.met(as_the_twin) is not None)


@given(outcomes())
def test_an_ensemble_never_passes_over_what_a_member_foretells_for_ever(outcome: Outcome) -> None:
    goal = Goal(Find.KERNEL)
    stands_in = surrogate(goal, MEMBERS, outcome)
    twin, other = stands_in.sides(outcome)
    assert twin is outcome[Arm.TWIN]
    foretold = goal.met(Outcome({Arm.TWIN: twin, Arm.DEVICE: other})) is not None
    asked = [stands_in.doubts(outcome) for _ in range(EnsembleForDevice.MOST_PASSED_OVER + 1)]
    assert any(asked) == foretold


@given(outcomes(ANSWERS))
def test_members_that_agree_spare_the_device(outcome: Outcome) -> None:
    twin = outcome[Arm.TWIN]
    agreeing = Outcome(outcome.answers, dict.fromkeys(MEMBERS, twin))
    stands_in = surrogate(Goal(Find.KERNEL), MEMBERS, outcome)
    assert not stands_in.doubts(agreeing)


@pytest.mark.parametrize("witness", [True, False])
def test_an_ensemble_that_was_wrong_too_often_is_joined_by_near_ties(witness: bool) -> None:
    twin = answered(1.0, 1.04, 0.0)
    arms = {Arm.TWIN: twin, **({Arm.ORIGINAL: answered(1.5, 1.0, 0.0)} if witness else {})}
    near_tie = Outcome(arms, dict.fromkeys(MEMBERS, twin))
    stands_in = surrogate(Goal(Find.KERNEL), MEMBERS, near_tie)
    for _ in range(EnsembleForDevice.PATIENCE):
        assert not stands_in.doubts(near_tie)
        stands_in.confirmed(kept=False)
    assert stands_in.doubts(near_tie)
    stands_in.confirmed(kept=True)
    assert not stands_in.doubts(near_tie)


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
