"""Tests of edgeflare.repair.judging.shown_inputs: which inputs a repair is shown on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judged_inputs import FRESH, TIGHT, WIDE, JudgedSet
from edgeflare.repair.judging.judgement import change
from edgeflare.repair.judging.shown_inputs import FOLDER, shown_inputs, write_shown
from tampering import EXAMPLE

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
    rows = [(1, 0.9, 0, 1, 0), (1, 0.8, 0, 1, 0), (1, 0.7, 0, 1, 0), (2, 0.1, 0, 1, 0)]
    assert [one[2:] for one in shown(2, tight=rows)] == [(1, 0), (2, 3)]
    assert [one[2:] for one in shown(3, tight=rows)] == [(1, 0), (1, 1), (2, 3)]


def test_a_fresh_input_is_of_no_seed() -> None:
    row = (1, 0.9, 0, 1, 0)
    assert shown(2, tight=[row, row], fresh=[row]) == [
        ("mended", TIGHT, 1, 0),
        ("mended", FRESH, 1, 0),
    ]


def test_inputs_without_an_answer_are_not_shown() -> None:
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
