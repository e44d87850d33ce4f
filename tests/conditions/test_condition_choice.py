"""Conditions as they are chosen: by names, by sets, and by a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.conditions.condition_choice import (
    ConditionTable,
    chosen_conditions,
    read_condition_file,
    read_severities,
)
from edgeflare.conditions.condition_registry import own_conditions

ROOT = Path(__file__).parents[2]

RAIN = """
from edgeflare.conditions.condition import condition

@condition("rain", domain="{domain}", sets=("weather", "common"), summary="drops on the case")
def rain(one, severity, rng):
    return one.copy()
"""


def names(domain: str, text: str | None) -> list[str]:
    return [one.name for one in chosen_conditions(domain, text)]


@pytest.mark.parametrize("domain", ["array", "audio", "frames"])
def test_the_common_set_is_taken_unless_told_otherwise(domain: str) -> None:
    common = [one.name for one in own_conditions(domain) if "common" in one.sets]
    assert names(domain, None) == names(domain, "common") == common


def test_none_is_no_condition_and_a_domain_without_any_has_none_by_default() -> None:
    assert chosen_conditions("audio", "none") == ()
    assert chosen_conditions("tokens", None) == ()


def test_sets_and_names_are_taken_in_their_order_and_each_once() -> None:
    noises = ["white-noise", "pink-noise", "babble-noise"]
    assert names("audio", "quiet, noise,white-noise,quiet") == ["quiet", *noises]
    assert "dull-microphone" in names("audio", "microphone")


def test_all_have_the_severities_that_were_asked_for() -> None:
    chosen = chosen_conditions("audio", "quiet,loud", (5, 1, 5))
    assert [one.severities for one in chosen] == [(1, 5), (1, 5)]
    assert chosen[0].condition is own_conditions("audio")[0]


@pytest.mark.parametrize(
    ("domain", "text", "complaint"),
    [
        (
            "audio",
            "whitenoise",
            "--conditions whitenoise: no condition or set of the domain audio has that name"
            " (did you mean 'white-noise'?)",
        ),
        ("audio", "Quiet", "(did you mean 'quiet'?)"),
        ("audio", "zzz", "`edgeflare conditions audio` lists all"),
        ("audio", "quiet,drift", "--conditions drift: a condition of the domain array, not of"),
        ("array", "microphone", "--conditions microphone: a set of the domain audio, not of array"),
        ("array", "microphone", "its sets are common, noise"),
        ("tokens", "common", "no conditions of the domain tokens: use --conditions none"),
        ("audio", "quiet,,loud", "'quiet,,loud': expected names separated by commas"),
        ("audio", "", "'': expected names separated by commas"),
        ("audio", "none,quiet", "none stands alone"),
        ("audio", "field.toml,quiet", "a file stands alone, without other names: add a table"),
        ("audio", "fieldd.toml", "fieldd.toml: cannot be read"),
    ],
)
def test_what_cannot_be_chosen_is_said(
    refusal: Callable[..., str], domain: str, text: str, complaint: str
) -> None:
    assert complaint in refusal(chosen_conditions, domain, text)


def test_packages_of_others_are_imported_only_for_names_that_are_none_of_ours(
    install: Callable[..., None], refusal: Callable[..., str]
) -> None:
    install(my_rain=RAIN.format(domain="audio"))
    assert "rain" not in names("audio", "common,quiet")
    assert "rain" not in names("audio", None)
    assert "my_rain" not in sys.modules
    assert names("audio", "rain,quiet") == ["rain", "quiet"]
    assert names("audio", "weather") == ["rain"]
    assert "did you mean 'rain'" in refusal(chosen_conditions, "audio", "rainn")


def test_a_broken_package_hides_no_suggestion(
    install: Callable[..., None], refusal: Callable[..., str]
) -> None:
    install(my_broken="raise RuntimeError('no')", my_rain=RAIN.format(domain="audio"))
    said = refusal(chosen_conditions, "audio", "rainn")
    assert "did you mean 'rain'" in said
    assert "left out: conditions 'a-my_broken'" in said
    assert names("audio", "rain") == ["rain"]


def test_of_a_domain_of_another_package_conditions_are_taken_by_name_alone(
    install: Callable[..., None],
) -> None:
    install(my_rain=RAIN.format(domain="radar"))
    assert names("radar", None) == []
    assert names("radar", "common") == ["rain"]


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        ("1-5", (1, 2, 3, 4, 5)),
        ("3", (3,)),
        ("5,1,3", (1, 3, 5)),
        ("1-2, 5", (1, 2, 5)),
        ("2-2", (2,)),
        ("1-3,2", (1, 2, 3)),
    ],
)
def test_severities_are_numbers_and_ranges(text: str, severities: tuple[int, ...]) -> None:
    assert read_severities(text) == severities


@pytest.mark.parametrize(
    "text", ["0", "6", "1-6", "5-1", "1-", "", "1,,2", "2.5", "x", "-1", "1-3-5"]
)
def test_other_severities_are_refused(refusal: Callable[..., str], text: str) -> None:
    assert "expected whole numbers from 1 to 5, as in 1-5, 3 or 1,3,5" in refusal(
        read_severities, text
    )


def write(folder: Path, text: str) -> str:
    path = folder / "field.toml"
    path.write_text(text)
    return str(path)


def test_a_file_names_conditions_with_severities_and_names_of_their_own(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[[conditions]]\ncondition = "quiet"\n'
        '[[conditions]]\ncondition = "quiet"\nname = "far-away"\nseverities = [5, 3, 5]\n',
    )
    near, far = chosen_conditions("audio", path, (2,))
    assert (near.name, near.severities) == ("quiet", (2,))
    assert (far.name, far.severities) == ("far-away", (3, 5))
    assert near.condition is far.condition


def test_the_file_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    told = re.search(r"^```toml field\.toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert told is not None
    chosen = chosen_conditions("image", write(tmp_path, told[1]), (1, 3))
    assert [(one.name, one.severities) for one in chosen] == [
        ("fog", (1, 3)),
        ("gaussian-noise", (1, 2, 3)),
        ("at-dusk", (5,)),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('condition = "quiett"', "condition 1: quiett: no condition or set of the domain audio"),
        ('condition = "drift"', "condition 1: drift: a condition of the domain array"),
        ('condition = "noise"', "'noise' is a set: name one of white-noise, pink-noise"),
        (
            'condition = "quiet"\n[[conditions]]\ncondition = "quiet"',
            "2 conditions are named 'quiet': give each its own name",
        ),
    ],
)
def test_what_a_file_cannot_choose_is_said(
    refusal: Callable[..., str], tmp_path: Path, text: str, complaint: str
) -> None:
    path = write(tmp_path, f"[[conditions]]\n{text}")
    said = refusal(chosen_conditions, "audio", path)
    assert said.startswith(f"{path}: ")
    assert complaint in said


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
