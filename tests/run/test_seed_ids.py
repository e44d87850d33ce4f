"""Ids of seeds as users write them: read, written, united, and refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.seed_ids import SeedIds

Refusal = Callable[..., str]

sets = st.sets(st.integers(0, 60), min_size=1)
far = st.sets(st.integers(0, 2**53 - 2), min_size=1, max_size=8)


@given(ids=sets | far)
def test_they_are_a_set_in_rising_order_and_are_read_as_they_are_written(ids: set[int]) -> None:
    one = SeedIds.of([*ids, *ids])
    assert list(one) == sorted(ids)
    assert (len(one), one.last) == (len(ids), max(ids))
    near = {other for seed_id in ids for other in (seed_id - 1, seed_id, seed_id + 1)}
    assert {seed_id for seed_id in near if seed_id in one} == ids
    assert SeedIds.read(str(one)) == SeedIds.read_option(str(one)) == one
    assert all(begin < end for begin, end in one.ranges)
    assert all(end < begin for (_, end), (begin, _) in pairwise(one.ranges))


@given(one=sets, other=sets)
def test_a_union_is_that_of_sets_in_either_order(one: set[int], other: set[int]) -> None:
    united = SeedIds.of(one) | SeedIds.of(other)
    assert set(united) == one | other
    assert united == SeedIds.of(other) | SeedIds.of(one) == SeedIds.of(one | other)


@given(ranges=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1))
def test_ranges_may_be_written_in_any_order_and_overlap(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{begin}:{begin + size}" for begin, size in ranges)
    meant = {seed_id for begin, size in ranges for seed_id in range(begin, begin + size)}
    assert set(SeedIds.read(text)) == meant


def test_a_range_ends_before_its_end() -> None:
    assert list(SeedIds.read("0:3, 7,9:10")) == [0, 1, 2, 7, 9]
    assert str(SeedIds.read("3,1,2,9,9:11")) == "1:4,9:11"
    for count in (0, 1, 9):
        assert list(SeedIds.first(count)) == list(range(count))
    assert not any(other in SeedIds.first(3) for other in ("0", 0.5, None, "a"))


@given(ids=sets, data=st.data())
def test_a_file_has_commas_or_lines_between_them_and_comments(
    tmp_path_factory: pytest.TempPathFactory, ids: set[int], data: st.DataObject
) -> None:
    between = st.sampled_from([",", "\n", " , ", "\n\n", "  # 99 is left out\n", "\r\n", "\t"])
    text = "# seeds of host 3, such as 98\n" + "".join(
        f"{seed_id}{data.draw(between)}" for seed_id in data.draw(st.permutations(sorted(ids)))
    )
    path = tmp_path_factory.mktemp("ids") / "ids.txt"
    path.write_bytes(text.encode())
    assert set(SeedIds.read_option(str(path))) == ids


BAD = [
    "5:3", "3:3", "-1", "1-4", "0:", ":5", "1:2:3", "0.5", "one", "0:9007199254740992",
    "9" * 30, "9" * 5000, "1:" + "9" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_what_says_something_else_is_refused_in_one_line(text: str, refusal: Refusal) -> None:
    said = refusal(SeedIds.read, text)
    assert said == (
        f"--seed-ids {text[:60]!r}: expected ids and ranges without their end, separated by"
        " commas, such as 0:50,60"
    )


@pytest.mark.parametrize("text", ["", "  ", ",", " ,\n, "])
def test_no_id_at_all_is_refused(text: str, refusal: Refusal) -> None:
    for read in (SeedIds.read, SeedIds.read_option):
        assert " names no seed: expected ids" in refusal(read, text)


@pytest.mark.parametrize("text", ["0:a", "1-4", "seeds.txt", "a\0b", "-1"])
def test_what_is_neither_ids_nor_a_file_is_refused(text: str, refusal: Refusal) -> None:
    said = refusal(SeedIds.read_option, text)
    assert said.startswith(f"--seed-ids {text!r}: expected ids and ranges")
    assert "or a file of them (" in said


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    path = tmp_path / "ids.txt"
    for content, said in (
        (b"", "names no seed"),
        (b"# 1,2\n", "names no seed"),
        (b"0:5\nseven\n", "--seed-ids 'seven': expected"),
        (b"\xff\xfe0", "is no text in UTF-8"),
    ):
        path.write_bytes(content)
        assert said in refusal(SeedIds.read_option, str(path))
    assert "or a file of them (" in refusal(SeedIds.read_option, str(tmp_path))


def test_a_pipe_and_a_file_without_end_are_not_read(tmp_path: Path, refusal: Refusal) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert f"{path} is not a regular file" in refusal(SeedIds.read_option, str(path))
