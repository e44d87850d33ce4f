"""Tests of what workers begin with."""

from __future__ import annotations

from pathlib import Path

from longest_files import LONGEST_FILES

TESTS = Path(__file__).parents[1]


def test_each_is_a_file_of_tests() -> None:
    assert [name for name in LONGEST_FILES if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST_FILES)) == len(LONGEST_FILES)
