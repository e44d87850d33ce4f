"""Inputs that a repair is judged by and shown on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.answer import Answer, Failure
from edgeflare.core.arm import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judged_inputs import (
    FRESH,
    SAMPLED,
    SEEDS,
    TIGHT,
    WIDE,
    JudgedSet,
    fresh_set,
    judged_sets,
    known_labels,
)
from edgeflare.repair.judging.judgement import change
from edgeflare.repair.judging.seed_split import SeedSplit, split_seeds
from edgeflare.repair.judging.shown_inputs import FOLDER, shown_inputs, write_shown
from tampering import EXAMPLE

LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=80)


@given(LABELS, st.integers(0, 100))
def test_each_seed_is_in_one_part_and_each_part_has_its_share_of_each_label(
    labels: list[int], number: int
) -> None:
    """To within one seed."""
    split = split_seeds(np.array(labels), np.random.default_rng(number))
    rows = np.concatenate([split.fit, split.choose, split.judge])
    assert sorted(rows.tolist()) == list(range(len(labels)))
    for label in set(labels):
        count = labels.count(label)
        for part, fifths in ((split.fit, 3), (split.choose, 1), (split.judge, 1)):
            mine = sum(labels[row] == label for row in part)
            assert abs(mine - count * fifths / 5) < 1.5


def test_another_generator_seed_divides_otherwise() -> None:
    labels = np.arange(50) % 10
    one, same, other = (split_seeds(labels, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.judge.tolist() == same.judge.tolist() != other.judge.tolist()


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_true_labels_are_those_of_the_seeds_alone(
    opened: OpenedPair, split: SeedSplit, sets: Mapping[str, JudgedSet]
) -> None:
    seeds = opened.seeds
    assert seeds.labels is not None
    true = sets[SEEDS].labels
    assert true is not None
    assert true.tolist() == seeds.labels[split.choose].tolist()
    assert [sets[name].labels for name in (TIGHT, WIDE, SAMPLED)] == [None] * 3


@pytest.mark.slow
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


@pytest.mark.slow
def test_sampled_inputs_are_near_the_compressed_models_boundary(
    sets: Mapping[str, JudgedSet],
) -> None:
    assert len(sets[SAMPLED].images) == len(sets[TIGHT].images) == 400
    assert max(answer.lead() for answer in sets[SAMPLED].before) < 0.25
    assert len(set(sets[SAMPLED].seed_ids.tolist())) > 30


@pytest.mark.slow
def test_the_same_generator_seed_makes_the_same_sets(opened: OpenedPair, split: SeedSplit) -> None:
    labels = known_labels(opened)
    one, same, other = (
        judged_sets(opened, labels, split.judge[::5], np.random.default_rng(seed), 40)
        for seed in (3, 3, 4)
    )
    for name in (TIGHT, WIDE, SAMPLED):
        assert one[name].images.tobytes() == same[name].images.tobytes()
        assert one[name].images.tobytes() != other[name].images.tobytes()


@pytest.mark.slow
def test_seeds_of_one_label_are_refused(opened: OpenedPair) -> None:
    labels = known_labels(opened)
    rows = np.flatnonzero(labels == labels[0])
    with pytest.raises(UserError, match="all of one label or none: give more seeds"):
        judged_sets(opened, labels, rows, np.random.default_rng(0), 10)


@pytest.mark.slow
def test_a_fresh_set_keeps_its_labels(opened: OpenedPair) -> None:
    images = opened.seeds.inputs[:30]
    true = np.r_[np.arange(29) % 10, -1]
    fresh = fresh_set(opened, Seeds(images, true, ()))
    assert fresh.labels is true
    assert fresh.seed_ids.tolist() == list(range(30))
    assert len(fresh.original) == len(fresh.before) == 30


Row = tuple[int, float, int, int, int]
"""Seed id, the original's margin, and the labels of original, before and after."""


def test_a_folder_of_inputs_that_leads_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / FOLDER).symlink_to(elsewhere)
    sets, after = one_set([(0, 0.5, 0, 1, 0)])
    shown = shown_inputs({TIGHT: sets}, {TIGHT: after})
    assert shown
    with pytest.raises(UserError, match="outside of it"):
        write_shown(out, load_pair(EXAMPLE), shown)
    assert not list(elsewhere.iterdir())


def answer(label: int, margin: float = 0.5, failure: Failure | None = None) -> Answer:
    probabilities = np.full(3, (1.0 - margin) / 3)
    probabilities[label] += margin
    return Answer(None if failure else label, False, probabilities, probabilities, failure)


def one_set(rows: Sequence[Row]) -> tuple[JudgedSet, list[Answer]]:
    """A set whose input at a position has that value in every pixel, and the answers after."""
    ids = np.array([row[0] for row in rows], np.int64)
    images = np.arange(len(rows), dtype=np.uint8)[:, None, None, None] + np.zeros((2, 2, 1), "u1")
    original, before = [answer(row[2], row[1]) for row in rows], [answer(row[3]) for row in rows]
    return JudgedSet(images, ids, None, original, before), [answer(row[4]) for row in rows]


def shown(most: int, **rows: Sequence[Row]) -> list[tuple[str, str, int, int]]:
    made = {name: one_set(some) for name, some in rows.items()}
    sets: Mapping[str, JudgedSet] = {name: one for name, (one, _) in made.items()}
    found = shown_inputs(sets, {name: after for name, (_, after) in made.items()}, most)
    return [(one.change, one.set, one.seed_id, int(one.pixels[0, 0, 0])) for one in found]


def test_the_largest_margins_of_each_change_come_first() -> None:
    tight = [(1, 0.1, 0, 1, 0), (2, 0.4, 0, 0, 1), (3, 0.3, 0, 1, 0), (4, 0.2, 0, 1, 1)]
    wide = [(5, 0.2, 0, 1, 0), (6, 0.5, 0, 0, 2), (7, 0.9, 0, 0, 0)]
    assert shown(2, tight=tight, wide=wide) == [
        ("mended", TIGHT, 3, 2),
        ("mended", WIDE, 5, 0),
        ("broken", WIDE, 6, 1),
        ("broken", TIGHT, 2, 1),
    ]


def test_a_seed_has_one_while_others_are_left() -> None:
    """A fresh input is of no seed, and one without an answer is not shown."""
    rows = [(1, 0.9, 0, 1, 0), (1, 0.8, 0, 1, 0), (1, 0.7, 0, 1, 0), (2, 0.1, 0, 1, 0)]
    assert [one[2:] for one in shown(2, tight=rows)] == [(1, 0), (2, 3)]
    assert [one[2:] for one in shown(3, tight=rows)] == [(1, 0), (1, 1), (2, 3)]
    row = (1, 0.9, 0, 1, 0)
    assert shown(2, tight=[row, row], fresh=[row]) == [
        ("mended", TIGHT, 1, 0),
        ("mended", FRESH, 1, 0),
    ]
    one, after = one_set([(1, 0.9, 0, 1, 0)])
    failed = JudgedSet(one.images, one.seed_ids, None, one.original, [answer(0, failure="crash")])
    assert shown_inputs({TIGHT: failed}, {TIGHT: after}) == ()


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 1), *[st.integers(0, 2)] * 3), max_size=30
)


@given(ROWS, ROWS, st.integers(0, 12))
def test_as_many_are_shown_as_are_changed(tight: list[Row], wide: list[Row], most: int) -> None:
    made = {TIGHT: one_set(tight), WIDE: one_set(wide)}
    found = shown_inputs(
        {name: one for name, (one, _) in made.items()},
        {name: after for name, (_, after) in made.items()},
        most,
    )
    changes = [change(one.original, one.before, after) for one, after in made.values()]
    for kind, count in (
        ("mended", sum(one.mended for one in changes)),
        ("broken", sum(one.broken for one in changes)),
    ):
        margins = [one.original.lead() for one in found if one.change == kind]
        assert len(margins) == min(count, most)
        assert margins == sorted(margins, reverse=True)
    assert len({one.file for one in found}) == len(found)
