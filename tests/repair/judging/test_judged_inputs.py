"""Tests of edgeflare.repair.judging.judged_inputs and edgeflare.repair.judging.sampled_inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.arm import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.repair.judging.judged_inputs import (
    SAMPLED,
    SEEDS,
    TIGHT,
    WIDE,
    JudgedSet,
    fresh_set,
    judged_sets,
    known_labels,
)
from edgeflare.repair.judging.seed_split import SeedSplit

pytestmark = pytest.mark.slow


def test_all_inputs_are_made_from_the_given_seeds(
    opened: OpenedPair, split: SeedSplit, sets: Mapping[str, JudgedSet]
) -> None:
    assert list(sets) == [SEEDS, TIGHT, WIDE, SAMPLED]
    assert sets[SEEDS].seed_ids.tolist() == split.choose.tolist()
    for one in sets.values():
        assert set(one.seed_ids.tolist()) <= set(split.choose.tolist())
        count = len(one.images)
        assert len(one.seed_ids) == len(one.original) == len(one.before) == count > 0
        assert one.images.shape[1:] == opened.seeds.inputs.shape[1:]


def test_answers_are_those_of_the_pairs_models(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    arms = (Arm.ORIGINAL, Arm.TWIN)
    for one in sets.values():
        asked = list(opened.evaluate(list(one.images[:20]), one.seed_ids[:20].tolist(), arms))
        for arm, kept in zip(arms, (one.original, one.before), strict=True):
            assert all(
                query.outcome[arm].equals(answer)
                for query, answer in zip(asked, kept[:20], strict=True)
            )


def test_true_labels_are_those_of_the_seeds_alone(
    opened: OpenedPair, split: SeedSplit, sets: Mapping[str, JudgedSet]
) -> None:
    seeds = opened.seeds
    assert seeds.labels is not None
    true = sets[SEEDS].labels
    assert true is not None
    assert true.tolist() == seeds.labels[split.choose].tolist()
    assert [sets[name].labels for name in (TIGHT, WIDE, SAMPLED)] == [None] * 3


def test_tight_inputs_lie_on_both_sides_and_more_of_them_deviate(
    sets: Mapping[str, JudgedSet],
) -> None:
    labels = [answer.decision for answer in sets[TIGHT].original]
    assert all(one != other for one, other in zip(labels[::2], labels[1::2], strict=True))

    def deviating(name: str) -> float:
        one = sets[name]
        return float(np.mean([f.differs(g) for f, g in zip(one.original, one.before, strict=True)]))

    assert 0 == deviating(SEEDS) < deviating(WIDE) < deviating(TIGHT)
    assert 0 < deviating(SAMPLED) < deviating(TIGHT)


def test_sampled_inputs_are_near_the_compressed_models_boundary(
    sets: Mapping[str, JudgedSet],
) -> None:
    assert len(sets[SAMPLED].images) == len(sets[TIGHT].images) == 400
    assert max(answer.lead() for answer in sets[SAMPLED].before) < 0.25
    assert len(set(sets[SAMPLED].seed_ids.tolist())) > 30


def test_the_same_generator_seed_makes_the_same_sets(opened: OpenedPair, split: SeedSplit) -> None:
    labels = known_labels(opened)
    one, same, other = (
        judged_sets(opened, labels, split.judge[::5], np.random.default_rng(seed), 40)
        for seed in (3, 3, 4)
    )
    for name in (TIGHT, WIDE, SAMPLED):
        assert one[name].images.tobytes() == same[name].images.tobytes()
        assert one[name].images.tobytes() != other[name].images.tobytes()


def test_seeds_of_one_label_are_refused(opened: OpenedPair) -> None:
    labels = known_labels(opened)
    rows = np.flatnonzero(labels == labels[0])
    with pytest.raises(UserError, match="all of one label or none: give more seeds"):
        judged_sets(opened, labels, rows, np.random.default_rng(0), 10)


def test_a_fresh_set_keeps_its_labels(opened: OpenedPair) -> None:
    images = opened.seeds.inputs[:30]
    true = np.r_[np.arange(29) % 10, -1]
    fresh = fresh_set(opened, Seeds(images, true, ()))
    assert fresh.labels is true
    assert fresh.seed_ids.tolist() == list(range(30))
    assert len(fresh.original) == len(fresh.before) == 30
