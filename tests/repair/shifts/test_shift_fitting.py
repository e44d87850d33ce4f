"""Shifts fitted to a world in which boundaries between classes were moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.repair.shift_details import REPAIRERS, JudgedRepairer
from edgeflare.repair.shifts.baselines.perceptron import second_class, train, train_abstaining
from edgeflare.repair.shifts.repair_samples import (
    FOLDS,
    SPLITS,
    Samples,
    assign_folds,
    fold_of,
    together,
)
from edgeflare.repair.shifts.shift_candidate import MixtureCounts, count_mixture, evaluate, why_none
from edgeflare.repair.shifts.shift_fitting import (
    GRID,
    Fitted,
    ShiftEffects,
    fit,
    fold_rows,
    shift_effects,
)
from edgeflare.repair.shifts.shifts import STEP, Shifts
from edgeflare.repair.shifts.training_inputs import TrainingInputs, match, matched_share
from edgeflare.statistics.bootstrap import Estimate

CLASSES = 4
OUTPUT = Tensor("scores", (1, CLASSES), "int8", 1 / 256, -128)


def shifts(**steps: int) -> Shifts:
    """Shifts from `c01=8`: by 8 steps in favour of class 0 against class 1."""
    table = np.zeros((CLASSES, CLASSES), np.int8)
    for name, value in steps.items():
        a, b = int(name[1]), int(name[2])
        table[a, b], table[b, a] = value, -value
    return Shifts(table)


class World:
    """Inputs whose original is the device with moved boundaries, but for some that are noise."""

    def __init__(self, moved: Shifts, seeds: int = 60, noise: float = 0.0, number: int = 0) -> None:
        self._moved = moved
        self._rng = np.random.default_rng(number)
        self._seeds = seeds
        self._noise = noise

    def near(self, count: int) -> Samples:
        """Inputs near the boundary between two classes, without ties."""
        rng = self._rng
        raw = np.full((count, CLASSES), -128, np.int16)
        pairs = np.array([rng.permutation(CLASSES)[:2] for _ in range(count)])
        lead = rng.integers(1, 25, count)
        rows = np.arange(count)
        raw[rows, pairs[:, 0]], raw[rows, pairs[:, 1]] = lead, -lead
        ids = rng.integers(0, self._seeds, count)
        return self._samples(raw.astype(np.int8), ids, pairs[rows, rng.integers(0, 2, count)])

    def seeds(self) -> Samples:
        """One input far from any boundary for each seed."""
        raw = np.full((self._seeds, CLASSES), -128, np.int8)
        labels = np.arange(self._seeds) % CLASSES
        raw[np.arange(self._seeds), labels] = 127
        return self._samples(raw, np.arange(self._seeds), labels)

    def training(self, near: int = 6000) -> TrainingInputs:
        """Everything that a repairer is made of; each seed has one trigger."""
        bisected = self.near(near)
        deviating = bisected.take(bisected.deviating)
        ids, firsts = np.unique(deviating.seed_ids, return_index=True)
        rest = np.ones(len(deviating), bool)
        rest[firsts] = False
        agreeing, sampled = bisected.take(~bisected.deviating), self.near(near)
        return TrainingInputs(
            deviating.take(firsts),
            self.seeds().take(ids),
            agreeing.take(np.isin(agreeing.seed_ids, ids)),
            deviating.take(rest),
            sampled.take(np.isin(sampled.seed_ids, ids)),
        )

    def _samples(
        self,
        raw: NDArray[np.int8],
        ids: NDArray[np.integer],
        seed_labels: NDArray[np.integer],
    ) -> Samples:
        originals = self._moved.apply(raw, OUTPUT).argmax(axis=1)
        second = np.argsort(raw, axis=1, kind="stable")[:, -2]
        flipped = (self._rng.random(len(raw)) < self._noise) & (raw.max(axis=1) < 100)
        return Samples(
            np.asarray(ids, np.int64),
            np.asarray(seed_labels, np.int64),
            np.where(flipped, second, originals).astype(np.int64),
            raw,
            OUTPUT,
        )


def test_samples_say_who_answers_what_and_how_surely() -> None:
    """Taken apart and put together they are the same."""
    raw = np.array([[-128, 0, 10, -100], [5, 5, -128, -128], [-128, -128, -128, 127]], np.int8)
    ids, labels, originals = np.array([7, 8, 9]), np.array([1, 0, 3]), np.array([1, 0, 3])
    whole = Samples(ids, labels, originals, raw, OUTPUT)
    assert whole.labels.tolist() == [2, 0, 3]  # the first among equals
    assert whole.seconds.tolist() == [1, 1, 0]
    assert whole.margins.tolist() == [10 / 256, 0.0, 255 / 256]
    assert whole.deviating.tolist() == [True, False, False]
    assert whole.on_seeds_side.tolist() == [False, True, True]
    back = together([whole.take(np.array([0])), whole.take(np.array([False, True, True]))])
    assert back.seed_ids.tolist() == whole.seed_ids.tolist()
    assert (back.raw == whole.raw).all()


@given(labels=st.lists(st.integers(0, 3), min_size=FOLDS, max_size=60), split=st.integers(0, 9))
def test_folds_are_equal_and_each_has_its_share_of_every_label(
    labels: list[int], split: int
) -> None:
    ids = np.arange(len(labels)) * 3
    assigned = assign_folds(ids, np.array(labels), split)
    assert sorted(assigned) == ids.tolist()
    sizes = Counter(assigned.values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(FOLDS)) <= 1
    for label in set(labels):
        mine = Counter(assigned[3 * at] for at, one in enumerate(labels) if one == label)
        assert max(mine.values()) - min(mine[fold] for fold in range(FOLDS)) <= 1


def test_what_was_made_from_a_seed_is_in_its_fold_and_another_split_has_others() -> None:
    ids, labels = np.arange(40), np.zeros(40, np.int64)
    one, same, other = (assign_folds(ids, labels, split) for split in (0, 0, 1))
    assert one == same != other
    assert fold_of(np.array([4, 4, 9]), one).tolist() == [one[4], one[4], one[9]]


def at_margins(steps: list[int], on_side: bool) -> Samples:
    raw = np.full((len(steps), 4), -128, np.int8)
    raw[:, 0], raw[:, 1] = steps, 0
    ids = np.arange(len(steps))
    label = np.zeros(len(steps), np.int64)
    return Samples(ids, label if on_side else label + 1, label, raw, OUTPUT)


def test_margins_and_sides_are_distributed_as_those_of_the_triggers() -> None:
    world = World(shifts(c01=8, c23=-16), noise=0.1)
    near = world.near(8000)
    triggers, agreeing = near.take(near.deviating), near.take(~near.deviating)
    weights = match(triggers, agreeing)
    assert weights.sum() == pytest.approx(len(triggers), rel=0.02)
    mean = np.average(agreeing.margins, weights=weights)
    assert mean == pytest.approx(triggers.margins.mean(), rel=0.02)
    assert mean < 0.9 * agreeing.margins.mean()
    sides = np.average(agreeing.on_seeds_side, weights=weights)
    assert sides == pytest.approx(triggers.on_seeds_side.mean(), abs=0.02)


def test_what_has_other_margins_or_no_like_is_not_matched() -> None:
    weights = match(at_margins([2, 3, 4], True), at_margins([1, 3, 40], True))
    assert weights[0] == weights[2] == 0.0 < weights[1]
    triggers = at_margins([2, 3, 4], True)
    assert matched_share(triggers, match(triggers, at_margins([2, 3, 4], False))) == 0.0
    assert matched_share(triggers, match(triggers, at_margins([2, 3, 4], True))) == 1.0


def told(repaired: list[float], induced: list[float], seeds: list[float]) -> MixtureCounts:
    ids = np.arange(len(repaired))
    ones = np.ones(len(repaired))
    parts = [(ids, ones, np.array(done)) for done in (repaired, induced, seeds)]
    return count_mixture(ids, (parts[0], parts[1], parts[2]))


def test_the_net_is_what_is_repaired_less_what_is_induced() -> None:
    """Weights count as so many inputs."""
    tallied = told([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    assert tallied.ratios.tolist() == [0.5, 0.25, 0.0]
    assert tallied.net.value == pytest.approx(0.25 / 3)
    ids = np.array([3, 5])
    one = (ids, np.ones(2), np.zeros(2))
    weighted = (np.array([3, 5, 5]), np.array([3.0, 0.5, 0.5]), np.array([0.0, 1.0, 0.0]))
    assert count_mixture(ids, (one, weighted, one)).ratios.tolist() == [0.0, 0.125, 0.0]


def test_the_interval_knows_that_inputs_of_one_seed_are_no_independent_evidence() -> None:
    rng = np.random.default_rng(0)
    per_seed = rng.integers(0, 2, 20).astype(float)
    ids = np.arange(20)
    nothing = (ids, np.ones(20), np.zeros(20))
    once = count_mixture(ids, ((ids, np.ones(20), per_seed), nothing, nothing))
    many = count_mixture(
        ids, ((ids.repeat(50), np.ones(1000), per_seed.repeat(50)), nothing, nothing)
    )
    assert once.net == many.net
    assert once.net.low < once.net.value < once.net.high


def test_gains_are_what_the_shifts_do() -> None:
    training = World(shifts(c01=8, c23=-12), noise=0.1).training(near=300)
    effects = shift_effects(training)
    kinds = (training.deviating, training.agreeing, training.seeds, training.sampled)
    samples = together(kinds)
    for place in range(0, len(GRID), 7):
        for at, (a, b) in enumerate(effects.pairs.tolist()):
            table = np.zeros((CLASSES, CLASSES), np.int8)
            table[a, b] = round(GRID[place] / STEP)
            table[b, a] = -table[a, b]
            rows = np.flatnonzero(effects.pair == at)
            after = Shifts(table).apply(samples.raw[rows], samples.tensor).argmax(axis=1)
            right = (after == samples.originals[rows]).astype(int)
            changed = right - ~samples.deviating[rows]
            assert (effects.gains[rows, place] == changed).all()


def fitted(training: TrainingInputs) -> Shifts:
    return fit(shift_effects(training), fold_rows(training.folds(0))).shifts


def test_boundaries_that_were_moved_are_found() -> None:
    found = fitted(World(shifts(c01=8, c23=-12)).training()).steps
    assert found[0, 1] == pytest.approx(8, abs=2)
    assert found[2, 3] == pytest.approx(-12, abs=2)
    assert np.count_nonzero(found) == 4


def test_what_was_found_mends_inputs_that_it_was_not_fitted_to() -> None:
    world = World(shifts(c01=8, c23=-12, c02=5), noise=0.02)
    found = fitted(world.training())
    fresh = world.near(3000)
    after = found.apply(fresh.raw, fresh.tensor).argmax(axis=1) != fresh.originals
    assert after.mean() < 0.4 * fresh.deviating.mean()


def test_where_deviations_are_noise_nothing_is_moved() -> None:
    training = World(shifts(), noise=0.1).training()
    found = fit(shift_effects(training), fold_rows(training.folds(0)))
    assert found.pairs == 0
    assert found.strength is None


def test_inputs_as_they_come_hold_back_what_gains_on_the_mixture_alone() -> None:
    # Of inputs whose top is class 0 before 1, three in ten deviate, of others one in ten: half of
    # the mixture does, so a shift gains there; as they come it would make twice as many deviate.
    world = World(shifts(), noise=0.1)
    training = world.training()
    rng = np.random.default_rng(1)
    parts = []
    for part in (world.near(9000), world.near(9000)):
        top = (part.labels == 0) & (part.seconds == 1)
        originals = np.where(top & (rng.random(len(part)) < 0.2), part.seconds, part.originals)
        parts.append(type(part)(part.seed_ids, part.seed_labels, originals, part.raw, part.tensor))
    led, sampled = parts
    deviating = led.take(led.deviating)
    firsts = np.unique(deviating.seed_ids, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(deviating)), firsts)
    training = TrainingInputs(
        deviating.take(firsts),
        training.seeds,
        led.take(~led.deviating),
        deviating.take(rest),
        sampled,
    )
    effects, rows = shift_effects(training), fold_rows(training.folds(0))
    alone = fit(effects.mixture_only, rows[effects.mixed]).shifts
    assert alone.steps[0, 1] < 0
    assert fit(effects, rows).shifts.steps[0, 1] == 0
    assert effects.ceiling > 0.0


def test_a_fold_that_is_held_out_decides_nothing() -> None:
    training = World(shifts(c01=8), noise=0.1).training(near=2000)
    effects, rows = shift_effects(training), fold_rows(training.folds(0))
    changed = effects.gains.copy()
    changed[rows == 2] = -1
    spoiled = ShiftEffects(effects.inputs, effects.pairs, effects.pair, changed, effects.mixed)
    originals = effects.inputs.originals.copy()
    originals[rows == 2] = 3
    spoiled.inputs.originals[:] = originals
    with_it = fit(spoiled, rows, without=2).table
    assert (with_it == fit(shift_effects(training), rows, without=2).table).all()


def test_the_perceptron_learns_the_triggers_and_breaks_their_like() -> None:
    inputs = World(shifts(c01=12, c23=-12), seeds=200, noise=0.05).training()
    repair = train(inputs, 0)
    assert (repair(inputs.triggers) == inputs.triggers.originals).mean() > 0.4
    assert (repair(inputs.seeds) == inputs.seeds.originals).mean() > 0.95
    assert (repair(inputs.agreeing) != inputs.agreeing.originals).mean() > 0.1


def test_the_same_generator_gives_the_same_perceptron() -> None:
    inputs = World(shifts(c01=12), noise=0.05).training(near=800)
    one, same, other = (train(inputs, number) for number in (1, 1, 2))
    assert (one(inputs.agreeing) == same(inputs.agreeing)).all()
    assert (one(inputs.agreeing) != other(inputs.agreeing)).any()
    assert len(one(inputs.agreeing.take(np.array([], np.int64)))) == 0


def test_ctrl_c_ends_more_than_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = World(shifts(c01=12), noise=0.05).training(near=200)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    network = "sklearn.neural_network.MLPClassifier"
    monkeypatch.setattr(f"{network}._update_no_improvement_count", interrupt)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        train(inputs, 0)


@pytest.mark.slow
def test_abstaining_leaves_alone_what_it_is_not_sure_of() -> None:
    inputs = World(shifts(), seeds=200, noise=0.1).training()
    always, sure = train(inputs, 0), train_abstaining(inputs, 0)
    before = inputs.agreeing.labels
    changed = [(repair(inputs.agreeing) != before).mean() for repair in (always, sure)]
    assert 0.0 < changed[1] < 0.5 * changed[0]


def test_the_second_class_is_the_second() -> None:
    near = World(shifts()).near(50)
    assert (second_class(near) == np.argsort(near.raw, axis=1)[:, -2]).all()


@pytest.fixture(scope="module")
def inputs() -> TrainingInputs:
    return World(shifts(c01=10, c23=-10), noise=0.03).training(near=3000)


@pytest.fixture(scope="module")
def repairers(inputs: TrainingInputs) -> Mapping[str, JudgedRepairer]:
    told: list[tuple[int, int]] = []
    found = evaluate(inputs, shift_effects(inputs), lambda *far: told.append(far))
    assert told[-1] == (SPLITS * FOLDS, SPLITS * FOLDS)
    return found


@pytest.mark.slow
def test_counts_and_ratios_are_those_of_the_paper(
    inputs: TrainingInputs, repairers: Mapping[str, JudgedRepairer]
) -> None:
    in_fold = len(inputs.triggers) / FOLDS
    assert list(repairers) == list(REPAIRERS)
    for judged in repairers.values():
        assert judged.repair_count == pytest.approx(judged.repair_ratio * in_fold)
        assert judged.inducing_count == pytest.approx(judged.inducing_ratio * in_fold)
        assert judged.improvement_ratio == pytest.approx(
            judged.repair_ratio - judged.inducing_ratio
        )
        assert judged.improvement_count == pytest.approx(judged.improvement_ratio * in_fold)
        assert judged.net.value == pytest.approx(
            (judged.repair_ratio - judged.induced_agreeing - judged.inducing_ratio) / 3
        )


@pytest.mark.slow
def test_always_answering_with_the_second_class_repairs_all_and_breaks_all(
    inputs: TrainingInputs, repairers: Mapping[str, JudgedRepairer]
) -> None:
    second = repairers["second-class"]
    assert second.repair_ratio > 0.95
    assert second.inducing_ratio == second.induced_agreeing == 1.0
    assert second.net.high < 0.0
    assert second.unguided_ratio is not None
    assert second.unguided_ratio > 1.0
    before = inputs.sampled.deviating
    assert second.unguided_broken == (~before).sum()
    assert 0.9 * before.sum() < second.unguided_mended <= before.sum()


@pytest.mark.slow
def test_shifts_do_better_than_the_papers_design(repairers: Mapping[str, JudgedRepairer]) -> None:
    shifted, paper = repairers["shifts"], repairers["perceptron"]
    assert shifted.net.low > 0.0
    assert shifted.net.value > paper.net.value
    assert shifted.unguided_ratio is not None
    assert shifted.unguided_ratio < 1.0


@pytest.mark.slow
def test_inputs_as_they_come_are_counted_where_none_deviated_before() -> None:
    inputs = World(shifts(c01=10), seeds=30).training(near=500)
    agreeing = replace(inputs, sampled=inputs.sampled.take(~inputs.sampled.deviating))
    judged = evaluate(agreeing, shift_effects(agreeing), lambda *_: None)["second-class"]
    assert judged.unguided_ratio is None
    assert judged.unguided_mended == 0.0
    assert judged.unguided_broken == len(agreeing.sampled)


# When shifts are a candidate.

SURE = JudgedRepairer(
    repair_count=5.0, repair_ratio=0.5, inducing_count=0.0, inducing_ratio=0.0,
    improvement_count=5.0, improvement_ratio=0.5, induced_agreeing=0.1,
    unguided_mended=4.0, unguided_broken=3.0, unguided_ratio=0.9,
    net=Estimate(0.1, 0.05, 0.15),
)  # fmt: skip


def sampled(mended: float, broken: float, ratio: float | None) -> JudgedRepairer:
    """Inputs as they come that are mended, and that begin to deviate."""
    return structs.replace(
        SURE, unguided_mended=mended, unguided_broken=broken, unguided_ratio=ratio
    )


FITTED = Fitted(np.array([[0.0, 0.125], [-0.125, 0.0]]), 1.0)


@pytest.mark.parametrize(
    ("judged", "fitted", "why"),
    [
        (SURE, FITTED, None),
        (sampled(0.0, 0.0, None), FITTED, None),
        (sampled(0.0, 12.0, None), FITTED, "12.0 begin to deviate, and 0.0 no longer do"),
        (sampled(0.0, 0.2, None), FITTED, "0.2 begin to deviate, and 0.0 no longer do"),
        (sampled(4.0, 5.0, 1.1), FITTED, "5.0 begin to deviate, and 4.0 no longer do"),
        (
            structs.replace(SURE, net=Estimate(0.1, 0.0, 0.2)),
            FITTED,
            "the net on held-out folds is not surely above zero (+10.0 points, 95 % interval +0.0"
            " to +20.0 points)",
        ),
        (SURE, Fitted(np.zeros((2, 2)), None), "no shift of a boundary gains anything"),
    ],
)
def test_shifts_are_a_candidate_where_they_surely_gain(
    judged: JudgedRepairer, fitted: Fitted, why: str | None
) -> None:
    said = why_none(judged, fitted)
    assert said is None if why is None else why in (said or "")
