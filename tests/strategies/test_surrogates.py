"""Laws of the surrogates, whatever the arms answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.strategies.strategy import Donor
from edgeflare.strategies.surrogate import Surrogate, compared
from edgeflare.strategies.surrogate_choice import (
    EnsembleSurrogate,
    NearTieSurrogate,
    QueryBackoff,
    TwinThenNearTieSurrogate,
    UnanimousTwinSurrogate,
    refinement_surrogates,
    search_surrogate,
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
            {Arm.ORIGINAL: original, Arm.TWIN: twin}, {"builtin": builtin, "reference": reference}
        ),
        *[answers] * 4,
    )


def asked_of(surrogate: Surrogate, outcome: Outcome) -> Outcome:
    """What a surrogate sees of an outcome: the answers that it asks for, and no others."""
    return Outcome(
        {arm: outcome[arm] for arm in surrogate.arms},
        {name: outcome.members[name] for name in surrogate.kernels},
    )


def on_device(outcome: Outcome, answer: Answer) -> Outcome:
    return Outcome({**outcome.answers, Arm.DEVICE: answer}, outcome.members)


@given(GOALS, st.sampled_from([(), MEMBERS[:1], MEMBERS]), st.booleans(), outcomes(), outcomes())
def test_what_it_asks_for_is_all_that_it_reads_and_never_the_device(
    goal: Goal, ensemble: tuple[str, ...], has_original: bool, seed: Outcome, outcome: Outcome
) -> None:
    if not has_original and goal.find is Find.KERNEL:
        seed = structs.replace(seed, answers={Arm.TWIN: seed[Arm.TWIN]})
    surrogate = search_surrogate(goal, ensemble, seed)
    assert Arm.DEVICE not in surrogate.arms
    assert Arm.TWIN in surrogate.arms
    assert (Arm.ORIGINAL in surrogate.arms) <= (Arm.ORIGINAL in seed.answers)
    assert surrogate.kernels == (() if goal.find is Find.ANY else ensemble)
    known = asked_of(surrogate, outcome)
    known_answers = [*known.answers.values(), *known.members.values()]
    assert all(any(side is one for one in known_answers) for side in surrogate.sides(known))
    assert isinstance(surrogate.decide(known), bool)


@given(st.sampled_from([Find.ANY, Find.COMPRESSION]), st.booleans(), outcomes())
def test_the_device_is_asked_just_where_it_would_be_a_finding_if_it_did_as_the_twin(
    find: Find, ties: bool, outcome: Outcome
) -> None:
    goal = Goal(find, ties)
    surrogate = search_surrogate(goal, (), outcome)
    as_the_twin = on_device(outcome, outcome[Arm.TWIN])
    for _ in range(TwinThenNearTieSurrogate.MIN_QUERIES):
        assert surrogate.decide(outcome) == (goal.met(as_the_twin) is not None)


TWIN = answered(1.04, 1.0, 0.0)
NEAR_TIE = Outcome({Arm.ORIGINAL: answered(1.2, 1.0, 0.0), Arm.TWIN: TWIN})
OTHER = on_device(NEAR_TIE, answered(1.1, 1.0, 0.0))
ALIKE = on_device(NEAR_TIE, TWIN)


def lasting(goal: Goal, looks: int, *others: Outcome) -> Surrogate:
    """A surrogate that has looked so often and asked for nothing."""
    image = np.zeros((1, 1, 1), np.uint8)
    surrogate = search_surrogate(goal, (), ALIKE, [Donor(image, outcome) for outcome in others])
    assert not any(surrogate.decide(NEAR_TIE) for _ in range(looks))
    return surrogate


def test_near_ties_count_once_a_search_has_lasted_the_sooner_if_the_device_is_another() -> None:
    soon, late = (
        TwinThenNearTieSurrogate.MIN_QUERIES,
        TwinThenNearTieSurrogate.MIN_QUERIES_IF_EQUAL,
    )
    for looks, others in ((soon, (ALIKE, OTHER)), (late, (ALIKE, ALIKE)), (late, ())):
        assert lasting(Goal(), looks, *others).decide(NEAR_TIE)


@given(outcomes(ANSWERS))
def test_the_device_confirms_what_all_members_say_with_the_twin(outcome: Outcome) -> None:
    goal = Goal(Find.COMPRESSION)
    deviates = search_surrogate(goal, (), outcome).decide(outcome)
    alike = Outcome(outcome.answers, dict.fromkeys(MEMBERS, outcome[Arm.TWIN]))
    assert search_surrogate(goal, MEMBERS, outcome).decide(alike) == deviates
    # One that sides with the original is enough to pass a deviation over, but not for ever.
    split = Outcome(outcome.answers, {**alike.members, "reference": outcome[Arm.ORIGINAL]})
    surrogate = search_surrogate(goal, MEMBERS, outcome)
    asked = [surrogate.decide(split) for _ in range(UnanimousTwinSurrogate.MOST_PASSED_OVER + 1)]
    assert asked == [False] * UnanimousTwinSurrogate.MOST_PASSED_OVER + [deviates]


def test_near_ties_never_count_for_what_compression_changed() -> None:
    lasting(Goal(Find.COMPRESSION), 2 * TwinThenNearTieSurrogate.MIN_QUERIES_IF_EQUAL, OTHER)


def test_near_ties_count_only_where_the_other_side_would_be_strong_enough() -> None:
    surrogate = lasting(Goal(min_strength=0.2), TwinThenNearTieSurrogate.MIN_QUERIES_IF_EQUAL)
    assert not surrogate.decide(NEAR_TIE)
    sure = structs.replace(
        NEAR_TIE, answers={**NEAR_TIE.answers, Arm.ORIGINAL: answered(2.0, 1.0, 0.0)}
    )
    assert surrogate.decide(sure)


def test_a_device_that_answers_as_its_twin_does_is_asked_more_and_more_seldom() -> None:
    surrogate = lasting(Goal(), TwinThenNearTieSurrogate.MIN_QUERIES_IF_EQUAL)
    asked = []
    for n in range(200):
        if surrogate.decide(NEAR_TIE):
            asked.append(n)
            surrogate.update(ALIKE)
    most = QueryBackoff.MOST_PASSED_OVER + 1
    assert np.diff(asked).tolist() == [2, 4, 8, 16] + [most] * (len(asked) - 5)
    assert len(asked) > 6
    while not surrogate.decide(NEAR_TIE):
        pass
    surrogate.update(OTHER)
    assert surrogate.decide(NEAR_TIE)


@given(outcomes())
def test_an_ensemble_never_passes_over_what_a_member_foretells_for_ever(outcome: Outcome) -> None:
    goal = Goal(Find.KERNEL)
    surrogate = search_surrogate(goal, MEMBERS, outcome)
    twin = outcome[Arm.TWIN]
    members = [outcome.members[name] for name in MEMBERS]
    other = next((one for one in members if one.decision != twin.decision), twin)
    foretold = goal.met(Outcome({Arm.TWIN: twin, Arm.DEVICE: other})) is not None
    asked = [surrogate.decide(outcome) for _ in range(EnsembleSurrogate.MOST_PASSED_OVER + 1)]
    assert any(asked) == foretold


@given(outcomes(ANSWERS))
def test_an_ensemble_follows_the_original_s_boundary_or_its_own_without_one(
    outcome: Outcome,
) -> None:
    original, twin = outcome[Arm.ORIGINAL], outcome[Arm.TWIN]
    assert search_surrogate(Goal(Find.KERNEL), MEMBERS, outcome).sides(outcome) == (original, twin)
    alone = structs.replace(outcome, answers={Arm.TWIN: twin})
    first, second = search_surrogate(Goal(Find.KERNEL), MEMBERS, alone).sides(alone)
    assert first is twin
    assert any(second is one for one in outcome.members.values())
    if any(one.decision != twin.decision for one in outcome.members.values()):
        assert second.decision != twin.decision


def unforeseen(*, has_original: bool) -> Outcome:
    """A near-tie of the twin about which all members agree with it."""
    twin = answered(1.0, 1.04, 0.0)
    arms = {Arm.TWIN: twin, **({Arm.ORIGINAL: answered(1.5, 1.0, 0.0)} if has_original else {})}
    return Outcome(arms, dict.fromkeys(MEMBERS, twin))


@pytest.mark.parametrize("has_original", [True, False])
def test_an_ensemble_that_is_wrong_too_often_or_silent_for_long_is_joined_by_near_ties(
    has_original: bool,
) -> None:
    near_tie = unforeseen(has_original=has_original)
    twin = near_tie[Arm.TWIN]
    silent = search_surrogate(Goal(Find.KERNEL), MEMBERS, near_tie)
    asked = [silent.decide(near_tie) for _ in range(EnsembleSurrogate.MOST_AGREEING)]
    assert asked.index(True) == EnsembleSurrogate.MOST_AGREEING - 1
    surrogate = search_surrogate(Goal(Find.KERNEL), MEMBERS, near_tie)
    for _ in range(EnsembleSurrogate.MOST_WRONG):
        assert not surrogate.decide(near_tie)
        surrogate.update(on_device(near_tie, answered(1.0, 1.1, 0.0)))
    assert surrogate.decide(near_tie)
    surrogate.update(on_device(near_tie, answered(1.1, twin.scores[0], 0.0)))
    assert not surrogate.decide(near_tie)


@given(outcomes())
def test_near_ties_are_near_and_no_ties(outcome: Outcome) -> None:
    twin = outcome[Arm.TWIN]
    queried = NearTieSurrogate(Goal(Find.KERNEL)).decide(outcome)
    if twin.failure is not None:
        assert queried
    elif queried:
        assert not twin.tied
        second, first = np.sort(twin.probabilities)[-2:]
        assert 0.0 < first - second < 0.5


@given(outcomes(ANSWERS))
def test_the_original_prefers_spares_near_ties_and_adds_none(outcome: Outcome) -> None:
    goal = Goal(Find.KERNEL)
    witnessed = search_surrogate(goal, (), outcome)
    assert not witnessed.decide(outcome) or NearTieSurrogate(goal).decide(outcome)
    # An original that is as sure of the twin's label as of any is no reason to doubt it.
    siding = Outcome({**outcome.answers, Arm.ORIGINAL: outcome[Arm.TWIN]})
    assert not witnessed.decide(siding)


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
    assert search_surrogate(goal, ensemble, outcome).decide(outcome) == (
        search_surrogate(goal, ensemble, renamed).decide(renamed)
    )


def _reordered(answer: Answer, order: list[int]) -> Answer:
    if answer.failure is not None:
        return answer
    scores = answer.scores[order]
    return replace(
        answer,
        decision=int(scores.argmax()),
        probabilities=answer.probabilities[order],
        scores=scores,
    )


@given(GOALS, st.sampled_from([(), MEMBERS[:1], MEMBERS]), outcomes(), outcomes())
def test_what_is_not_a_decision_or_an_update_changes_nothing(
    goal: Goal, ensemble: tuple[str, ...], seed: Outcome, outcome: Outcome
) -> None:
    once, again = (search_surrogate(goal, ensemble, seed) for _ in range(2))
    for _ in range(2 * UnanimousTwinSurrogate.MOST_PASSED_OVER):
        again.deviates(outcome), again.sides(outcome), again.substitute(outcome)
        assert once.decide(outcome) == again.decide(outcome)


@given(GOALS, st.sampled_from([(), MEMBERS[:1], MEMBERS]), outcomes(), ANYTHING)
def test_each_surrogate_stands_on_the_arms_and_members_that_it_queries(
    goal: Goal, ensemble: tuple[str, ...], outcome: Outcome, device: Answer
) -> None:
    whole = on_device(outcome, device)
    for surrogate in (
        *refinement_surrogates(goal, ensemble),
        search_surrogate(goal, ensemble, whole),
    ):
        known = asked_of(surrogate, whole)
        assert surrogate.is_answered_by(known)
        assert not surrogate.is_answered_by(Outcome({}))
        substituted = surrogate.substitute(known)
        assert Arm.DEVICE in substituted.answers
        assert substituted.members == known.members
        if not isinstance(surrogate, (EnsembleSurrogate, NearTieSurrogate)):
            assert surrogate.sides(known) == compared(goal, substituted)
            assert surrogate.deviates(known) == (goal.met(substituted) is not None)


@given(GOALS, st.sampled_from([(), MEMBERS]), outcomes(), ANYTHING)
def test_where_no_model_of_the_host_predicts_the_device_it_answers_itself(
    goal: Goal, ensemble: tuple[str, ...], outcome: Outcome, device: Answer
) -> None:
    whole = on_device(outcome, device)
    surrogate = search_surrogate(goal, ensemble, whole, host_predicts=False)
    assert surrogate.arms == goal.needed
    assert surrogate.kernels == ()
    assert surrogate.sides(whole) == compared(goal, whole)
    assert surrogate.decide(whole) == (goal.met(whole) is not None)


def test_the_device_itself_comes_last_where_a_trigger_is_refined() -> None:
    for goal, ensemble, count in ((Goal(), MEMBERS, 2), (Goal(Find.KERNEL), MEMBERS, 3)):
        *hosts, device = refinement_surrogates(goal, ensemble)
        assert len(hosts) == count - 1
        assert not any(Arm.DEVICE in surrogate.arms for surrogate in hosts)
        assert device.arms == goal.needed
        whole = on_device(NEAR_TIE, TWIN)
        assert device.substitute(whole) is whole
