"""What identifies a screening: what was answered, and not when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.screening_rows import screening_sha256

ROW = AnswerRow(
    role="seed", seed_id=0, n=0, image_crc32=7, original=b"one", twin=b"two", device=b"three",
    members=None, failures={}, seconds=0.5,
)  # fmt: skip


def answers(count: int = 3) -> dict[int, AnswerRow]:
    return {seed_id: replace(ROW, seed_id=seed_id) for seed_id in range(count)}


@given(order=st.permutations(range(5)), seconds=st.floats(0, 1e6))
def test_neither_order_nor_time_changes_it(order: list[int], seconds: float) -> None:
    rows = answers(5)
    other = {seed_id: replace(rows[seed_id], seconds=seconds) for seed_id in order}
    assert screening_sha256(other) == screening_sha256(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"image_crc32": 8},
        {"original": b"onf"},
        {"twin": None},
        {"twin": b""},
        {"device": b"thref"},
        {"members": b"four"},
        {"failures": {"device": "timeout"}},
        # The same bytes, shared out otherwise.
        {"original": b"onet", "twin": b"wo"},
        {"original": b"onetwo", "twin": b""},
    ],
)
def test_any_other_answer_does(change: dict[str, Any]) -> None:
    rows = answers()
    assert screening_sha256({**rows, 1: replace(rows[1], **change)}) != screening_sha256(rows)


def test_more_and_fewer_seeds_do() -> None:
    assert len({screening_sha256(answers(count)) for count in range(4)}) == 4


def test_answers_to_other_seeds_do() -> None:
    rows = answers(2)
    swapped = {0: rows[0], 2: replace(rows[1], seed_id=2)}
    assert screening_sha256(swapped) != screening_sha256(rows)
