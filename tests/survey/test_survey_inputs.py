"""The inputs of a survey, their groups and conditions, and whether they are made as they were."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds
from edgeflare.errors import UserError
from edgeflare.record.json_types import plain_json
from edgeflare.run.answer_rows import input_crc32
from edgeflare.survey.gates.gate_judgement import surveyed_sets
from edgeflare.survey.items.survey_inputs import (
    AskedGroups,
    describe_inputs,
    groups_of_files,
    read_groups,
    require_enough,
    speaking_of_inputs,
)
from edgeflare.survey.items.survey_items import (
    SurveyedItems,
    require_same_input,
    require_same_inputs,
)
from edgeflare.survey.record.survey_plan import NotedCondition, noted_conditions, noted_sets
from linear_laboratory import linear_laboratory
from surveying import CHOSEN, DARK, NOISE

NAMES = ("0.png", "1.png")


def inputs(count: int, first: int = 0, suffix: str = "") -> Seeds:
    values = np.arange(first, first + count * 4).reshape(count, 2, 2)
    return Seeds(values, None, tuple(f"{at}{suffix}" for at in range(count)))


def saved(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
    return folder / "inputs.npz"


def groups_of(groups: AskedGroups) -> list[str]:
    return [groups.names[at] for at in groups.of_inputs]


@pytest.mark.parametrize(("count", "left"), [(12, "26%"), (1, "98%"), (29, "12%")])
def test_few_inputs_are_refused_with_the_width_to_expect(count: int, left: str) -> None:
    with pytest.raises(UserError, match=f"{count} inputs?, too few .* up to {left} still could"):
        require_enough(Path("seeds.npz"), inputs(count))
    require_enough(Path("seeds.npz"), inputs(30))


def test_inputs_are_told_apart_by_their_values() -> None:
    one, same, other = (
        describe_inputs(Path("a.npz"), seeds) for seeds in (inputs(3), inputs(3), inputs(3, 1))
    )
    assert one == same
    assert one.sha256 != other.sha256
    assert one.count == 3


def test_words_of_an_array_are_groups(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["old", "young", "old"]))
    groups = read_groups(path, inputs(3), "who", ALL_SEEDS)
    assert groups.names == ("old", "young")
    assert groups_of(groups) == ["old", "young", "old"]


@pytest.mark.parametrize(
    ("values", "names"),
    [([10, 9, -1, 9], ("-1", "9", "10")), (["9" * 5000, "10", "9", "9"], ("9", "10", "9" * 5000))],
    ids=["numbers", "words of any length"],
)
def test_numbers_are_ordered_by_their_size(
    values: list[object], names: tuple[str, ...], tmp_path: Path
) -> None:
    path = saved(tmp_path, who=np.array(values))
    assert read_groups(path, inputs(4), "who", ALL_SEEDS).names == names


def test_an_input_that_a_limit_takes_has_the_group_of_its_place_in_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["b", "a", "b", "c", "b"]))
    first = read_groups(path, inputs(3), "who", SeedChoice(first=3))
    assert (first.names, groups_of(first)) == (("a", "b"), ["b", "a", "b"])
    some = replace(inputs(3), names=("0", "3", "4"))
    assert groups_of(read_groups(path, some, "who", SeedChoice(limit=3))) == ["b", "c", "b"]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"what": np.array(["a", "b"])}, r"no column of that name \(did you mean 'what'\?\)"),
        ({"who": np.array(["a", "b", "a"])}, "3 values in it for 2 inputs"),
        ({"who": np.array([0.5, 1.5])}, "float64 .* expected a string or an integer"),
        ({"who": np.array([["a"], ["b"]])}, "expected a string or an integer"),
        ({"who": np.array(["a", " "])}, "gives input 1 an empty word"),
        ({"who": np.array(["a", "a"])}, "all have one value in it: expected 2 to 100"),
        ({"who": np.array(["a", "b"])}, "each of the 2 inputs has a group of its own"),
        ({"who": np.array(["a", None])}, "no array of strings or integers"),
    ],
)
def test_what_is_no_column_of_groups_is_refused(
    arrays: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, **arrays)
    with pytest.raises(UserError, match=said):
        read_groups(path, inputs(2), "who", ALL_SEEDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of images that may have a table of groups."""
    for name in (*NAMES, "2.png"):
        (tmp_path / name).touch()
    return tmp_path


def write(folder: Path, table: str) -> Path:
    (folder / "groups.csv").write_text(table, "utf-8", newline="")
    return folder


def test_a_folder_has_a_table_of_groups(folder: Path) -> None:
    write(folder, "name,skin\n1.png,dark\n0.png,light\n2.png,dark\n")
    groups = read_groups(folder, inputs(3, suffix=".png"), "skin", SeedChoice(first=3))
    assert groups_of(groups) == ["light", "dark", "dark"]


@pytest.mark.parametrize(
    "table",
    [
        "name,who\n1.png,dark\n0.png,light\n",
        "\ufeffname,who\r\n0.png,light\r\n1.png,dark\r\n",
        "age, who , name\n3, light , 0.png\n\n4,dark,1.png,,\n",
        "name,who\n0.png,light\n1.png,dark\n0.png,light\n",
        "name,who\n0.png,light\n1.png,dark\n2.png,\n",
    ],
)
def test_a_table_says_the_group_of_each_file(table: str, folder: Path) -> None:
    assert groups_of_files(write(folder, table), NAMES, "who") == ["light", "dark"]


def test_files_in_sub_folders_that_are_labels_have_groups_of_their_own(folder: Path) -> None:
    for label in ("bag", "coat"):
        (folder / label).mkdir()
        (folder / label / "0.png").touch()
    write(folder, "name,who\nbag/0.png,light\ncoat/0.png,dark\n")
    seeds = replace(inputs(3), names=("coat/0.png", "bag/0.png", "bag/0.png"))
    groups = read_groups(folder, seeds, "who", ALL_SEEDS)
    assert groups_of(groups) == ["dark", "light", "light"]
    with pytest.raises(UserError, match=r"'bag/1\.png', and there is no such file"):
        groups_of_files(write(folder, "name,who\nbag/1.png,light\n"), ["bag/0.png"], "who")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "no column 'name'; it has nothing"),
        ("names,who\n0.png,a\n", r"no column 'name' \(did you mean 'names'\?\)"),
        ("name,whom\n0.png,a\n", r"no column of that name \(did you mean 'whom'\?\); it has name,"),
        ("name,who,who\n0.png,a,b\n", "has two columns 'who': rename one"),
        ("name,who\n0.png,a\n", "gives 1.png no group"),
        ("name,who\n0.png,a\n1.png,  \n", "gives 1.png no group"),
        ("name,who\n0.png,a\n1.png\n", "gives 1.png no group"),
        ("name,who\n0.png,a\n1.png,b\n0.png,b\n", "gives 0.png two groups, 'a' and 'b'"),
        ("name,who\n0.png,a\n1.pgn,b\n", r"names '1.pgn', .* no such file \(did you mean '1.png'"),
        ("name,who\n0.png,a\n1.png,b\n2.png,b\nl.png,b\n", r"no such file \(did you mean '"),
    ],
)
def test_a_bad_table_is_refused_in_a_line(table: str, said: str, folder: Path) -> None:
    with pytest.raises(UserError, match=said) as refused:
        groups_of_files(write(folder, table), NAMES, "who")
    assert str(refused.value).startswith("--groups who: ")


def test_a_file_is_no_column(folder: Path) -> None:
    with pytest.raises(UserError, match=r"expected the name of a column, of groups\.csv in"):
        groups_of_files(write(folder, "name,who\n0.png,a\n"), NAMES, "lights.csv")


def test_what_is_no_table_of_text_is_refused(folder: Path) -> None:
    """Neither waited for, where it is a pipe, nor read, where it has no end."""
    table = folder / "groups.csv"

    def refused() -> str:
        with pytest.raises(UserError) as caught:
            groups_of_files(folder, NAMES, "who")
        return str(caught.value)

    assert "groups.csv cannot be read" in refused()
    for content in (b"name,who\n0.png,\xff\n", b"name,who\n0.png,\0\n"):
        table.write_bytes(content)
        assert "groups.csv is no text" in refused()
    with table.open("wb") as file:
        file.truncate(2**28 + 1)
    assert "groups.csv is larger than 256 MiB" in refused()
    table.unlink()
    os.mkfifo(table)
    assert "groups.csv is not a regular file" in refused()


@pytest.mark.parametrize(
    ("of_seeds", "of_inputs"),
    [
        ("there are no seeds at seeds: give", "--inputs: there are no inputs at seeds: give"),
        ("seeds seeds.npz: give each", "--inputs seeds.npz: give each"),
        ("seeds: a/seeds 1.png ends", "--inputs: a/seeds 1.png ends"),
        ("seeds x.npz: seed 5 has values", "--inputs x.npz: input 5 has values"),
    ],
)
def test_what_refuses_seeds_speaks_of_inputs_where_they_are_not_those_of_the_pair(
    of_seeds: str, of_inputs: str
) -> None:
    for own_inputs, said in ((True, of_inputs), (False, of_seeds)):
        with pytest.raises(UserError) as caught, speaking_of_inputs(own_inputs=own_inputs):
            raise UserError(of_seeds)
        assert str(caught.value) == said


def mist(folder: Path, chosen: ChosenCondition) -> SurveyedItems:
    laboratory = linear_laboratory(folder)
    return SurveyedItems.of((chosen,), laboratory.images, laboratory.interface.domain.space, 0)


def checksums(items: SurveyedItems) -> dict[int, int]:
    return {item: input_crc32(items.make(item)) for item in range(len(items))}


def test_items_that_are_made_otherwise_than_before_are_told(tmp_path: Path) -> None:
    items = mist(tmp_path, ChosenCondition("mist", NOISE, (1, 2)))
    known = checksums(items)
    require_same_inputs(items, known, "runs/before")
    require_same_inputs(items, {}, "runs/before")
    require_same_input(items, 30, items.make(30), known[30])
    with pytest.raises(UserError, match="'mist' returned another input than before"):
        require_same_input(items, 30, items.make(31), known[30])
    now = mist(tmp_path, ChosenCondition("mist", DARK, (1, 2)))
    said = "^runs/before has other inputs under 'mist' at severity 1 than"
    with pytest.raises(UserError, match=said):
        require_same_inputs(now, known, "runs/before")


def test_what_is_noted_of_conditions_is_read_again() -> None:
    noted = noted_conditions(CHOSEN)
    assert noted["grain"] == NotedCondition("grain", ("noise",))
    assert msgspec.convert(plain_json(noted), dict[str, NotedCondition]) == noted
    assert noted_sets(noted) == surveyed_sets(CHOSEN) == {"noise": frozenset({"grain"})}


@pytest.mark.parametrize(
    ("noted", "name", "words"),
    [
        (NotedCondition("fog"), "fog", "fog"),
        (NotedCondition("fog"), "mist", "mist (fog)"),
        (NotedCondition("rain", (), "mine 1.0"), "rain", "rain (of mine 1.0)"),
        (NotedCondition("rain", (), "mine 1.0"), "wet", "wet (rain of mine 1.0)"),
    ],
)
def test_a_name_says_what_it_stands_for_where_that_is_something_else(
    noted: NotedCondition, name: str, words: str
) -> None:
    assert noted.words(name) == words
