"""Who is asked while a trigger is refined, how often, and what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driving import SearchCase
from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.search.refining.trigger_refinement import (
    PATIENCE,
    BudgetSpentError,
    EvaluatedInput,
    TriggerRefinement,
)
from refinement_loop import SEEDS, bench, everyone, like_the_twin, trigger_of


def trial_of(of: SearchCase, goal: Goal, budget: int = 10) -> TriggerRefinement:
    return TriggerRefinement(trigger_of(of, goal), of.start(goal), budget)


def arms_asked(refinement: TriggerRefinement) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    (query,) = next(refinement.evaluate([refinement.start.seed]))
    return query.arms, query.kernels


@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_the_twin_stands_in_where_it_deviates_too(find: Find) -> None:
    refinement = trial_of(like_the_twin(bench()), Goal(find))
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.TWIN), ())


def test_where_only_the_device_deviates_it_is_asked_itself() -> None:
    of = bench()
    trusted = trigger_of(like_the_twin(of), Goal())
    models = {**of.models, Arm.TWIN: of.models[Arm.ORIGINAL], Arm.DEVICE: of.models[Arm.TWIN]}
    of = replace(of, models=models)
    trigger = replace(trusted, outcome=everyone(of, trusted.input))
    refinement = TriggerRefinement(trigger, of.start(Goal()), 10)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def test_of_the_members_one_that_shows_the_trigger_stands_in() -> None:
    of = bench()
    members = {"reference": of.models[Arm.TWIN], "builtin": of.models[Arm.DEVICE]}
    refinement = trial_of(replace(of, members=members), Goal(Find.KERNEL))
    assert arms_asked(refinement) == ((Arm.TWIN,), ("builtin",))


def test_who_did_not_answer_about_the_trigger_does_not_stand_in() -> None:
    of = like_the_twin(bench())
    trigger = trigger_of(of, Goal())
    told = {arm: trigger.outcome[arm] for arm in (Arm.ORIGINAL, Arm.DEVICE)}
    trigger = replace(trigger, outcome=replace(trigger.outcome, answers=told))
    refinement = TriggerRefinement(trigger, of.start(Goal()), 10)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def test_no_more_is_asked_than_is_left_and_within_the_bounds() -> None:
    of = replace(like_the_twin(bench()), bounds=Bounds(250.0, 1500.0))
    refinement = trial_of(of, Goal(), budget=3)
    far = [255 - of.seed, *SEEDS]
    asked = next(refinement.evaluate(far))
    assert len(asked) == 3
    assert all(of.bounds.holds(query.input, of.seed) for query in asked)
    assert refinement.left == 0
    with pytest.raises(BudgetSpentError):
        next(refinement.evaluate(far))


def kept(refinement: TriggerRefinement, of: SearchCase, seen: EvaluatedInput, better: bool) -> bool:
    part = refinement.keep(seen, lambda _outcome: better)
    try:
        asked = next(part)
        part.send([of.evaluate(query.input, query.arms) for query in asked])
    except StopIteration as end:
        return bool(end.value)
    raise AssertionError("asked twice")


def test_what_is_kept_deviates_on_the_device_and_is_better() -> None:
    of = like_the_twin(bench())
    refinement = trial_of(of, Goal())
    found = refinement.at_trigger()
    host = {arm: found.outcome[arm] for arm in (Arm.ORIGINAL, Arm.TWIN)}
    seen = replace(found, outcome=replace(found.outcome, answers=host))
    before = refinement.trigger

    assert not kept(refinement, of, seen, better=False)
    assert refinement.trigger is before
    assert kept(refinement, of, seen, better=True)
    assert refinement.trigger is not before
    assert refinement.trigger.outcome.answers.keys() == set(Arm)
    assert not kept(refinement, contradicting(of), seen, better=True)
    assert np.array_equal(refinement.trigger.input, before.input)


def test_a_host_that_is_contradicted_again_and_again_is_no_longer_heard() -> None:
    of = like_the_twin(bench())
    refinement = trial_of(of, Goal())
    found = refinement.at_trigger()
    host = {arm: found.outcome[arm] for arm in (Arm.ORIGINAL, Arm.TWIN)}
    seen = replace(found, outcome=replace(found.outcome, answers=host))
    for _ in range(PATIENCE):
        assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.TWIN), ())
        assert not kept(refinement, contradicting(of), seen, better=True)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def contradicting(of: SearchCase) -> SearchCase:
    """The same with a device that answers as the original."""
    return replace(of, models={**of.models, Arm.DEVICE: of.models[Arm.ORIGINAL]})
