from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.conditions.condition_file import ConditionTable, read_condition_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "field.toml"


def test_tables_are_read_in_their_order(path: Path) -> None:
    path.write_text(
        '[[conditions]]\ncondition = "fog"\n\n'
        '[[conditions]]\nname = "morning-fog"\ncondition = "fog"\nseverities = [1, 3]\n'
    )
    assert read_condition_file(path) == (
        ConditionTable("fog"),
        ConditionTable("fog", (1, 3), "morning-fog"),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'write a table [[conditions]] with condition = "NAME" for each'),
        ("conditions = []", "write a table [[conditions]]"),
        ('conditions = ["fog"]', "write a table [[conditions]]"),
        ('[conditions]\ncondition = "fog"', "write a table [[conditions]]"),
        ('[[condition]]\ncondition = "fog"', "unknown key condition (did you mean 'conditions'?)"),
        ("[[conditions]]\nseverities = [1]", "condition 1: condition is missing: add it"),
        ("[[conditions]]\ncondition = 3", "condition 1: condition is 3: expected `str`"),
        (
            '[[conditions]]\ncondition = "fog"\n[[conditions]]\ncondition = "fog"\nseverity = [1]',
            "condition 2: unknown key severity (did you mean 'severities'?)",
        ),
        *(
            (f"severities = {written}", f"severities is {said}: write whole numbers from 1 to 5")
            for written, said in (
                ("3", "3"),
                ("1.5", "1.5"),
                ("[1.5]", "[1.5]"),
                ('"1-3"', "'1-3'"),
                ('["1-3"]', "['1-3']"),
                ("[true]", "[True]"),
            )
        ),
        ("severities = []", "severities is []: write some of [1, 2, 3, 4, 5], as in severities ="),
        ("severities = [0, 1]", "severities is [0, 1]: write some of"),
        ("severities = [6]", "severities is [6]: write some of"),
        ('name = "Morning fog"', "name: 'Morning fog' is no name"),
        ('name = "unchanged"', "name: the name 'unchanged' has another meaning"),
        ("=", "is not valid TOML"),
    ],
)
def test_what_a_file_may_not_say_is_refused(
    path: Path, refusal: Callable[..., str], text: str, complaint: str
) -> None:
    of_a_table = text.startswith(("severities", "name"))
    path.write_text(f'[[conditions]]\ncondition = "fog"\n{text}' if of_a_table else text)
    said = refusal(read_condition_file, path)
    assert said.startswith(f"{path}: ")
    assert complaint in said


def test_a_file_that_is_not_there_is_answered_with_the_nearest(
    path: Path, refusal: Callable[..., str]
) -> None:
    path.write_text('[[conditions]]\ncondition = "fog"\n')
    (path.parent / "field.txt").write_text("")
    (path.parent / "feldd.toml").write_text('[project]\nname = "mine"\n')
    (path.parent / "feldt.toml").write_text("no table")
    said = refusal(read_condition_file, path.with_name("feld.toml"))
    assert said.endswith(f"(did you mean '{path}'?)")


def test_a_folder_and_a_binary_file_are_refused(path: Path, refusal: Callable[..., str]) -> None:
    assert "cannot be read: Is a directory" in refusal(read_condition_file, path.parent)
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not valid TOML" in refusal(read_condition_file, path)
