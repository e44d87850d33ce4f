"""The inputs of a survey, and their groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.survey.items.surveyed_inputs import (
    InputGroups,
    describe_inputs,
    read_groups,
    require_enough,
)


def inputs(count: int, first: int = 0, suffix: str = "") -> Seeds:
    values = np.arange(first, first + count * 4).reshape(count, 2, 2)
    return Seeds(values, None, tuple(f"{at}{suffix}" for at in range(count)))


def saved(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
    return folder / "inputs.npz"


def groups_of(groups: InputGroups) -> list[str]:
    return [groups.names[at] for at in groups.of_inputs.tolist()]


@pytest.mark.parametrize(("count", "left"), [(12, "26%"), (1, "98%"), (29, "12%")])
def test_few_inputs_are_refused_with_the_width_to_expect(count: int, left: str) -> None:
    with pytest.raises(UserError, match=f"{count} inputs?, too few .* up to {left} still could"):
        require_enough(Path("seeds.npz"), inputs(count))


def test_thirty_inputs_are_enough() -> None:
    require_enough(Path("seeds.npz"), inputs(30))


def test_inputs_are_told_apart_by_their_values() -> None:
    one, same, other = (
        describe_inputs(Path("a.npz"), seeds) for seeds in (inputs(3), inputs(3), inputs(3, 1))
    )
    assert one == same
    assert one["sha256"] != other["sha256"]
    assert one["count"] == 3


def test_words_of_an_array_are_groups(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["old", "young", "old"]))
    groups = read_groups(path, inputs(3), "who", ALL_SEEDS)
    assert groups.names == ("old", "young")
    assert groups_of(groups) == ["old", "young", "old"]


def test_numbers_are_ordered_by_their_size(tmp_path: Path) -> None:
    path = saved(tmp_path, age=np.array([10, 9, -1, 9]))
    assert read_groups(path, inputs(4), "age", ALL_SEEDS).names == ("-1", "9", "10")


def test_numbers_of_any_length_are_groups(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["9" * 5000, "10", "9", "9"]))
    assert read_groups(path, inputs(4), "who", ALL_SEEDS).names == ("9", "10", "9" * 5000)


def test_a_limit_takes_the_first_groups(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["b", "a", "b", "c"]))
    assert read_groups(path, inputs(3), "who", SeedChoice(first=3)).names == ("a", "b")


def test_an_input_that_a_limit_takes_has_the_group_of_its_place_in_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, who=np.array(["b", "a", "b", "c", "b"]))
    some = replace(inputs(3), names=("0", "3", "4"))
    assert groups_of(read_groups(path, some, "who", SeedChoice(limit=3))) == ["b", "c", "b"]


def test_a_folder_has_a_table_of_groups(tmp_path: Path) -> None:
    for name in ("0.png", "1.png", "2.png", "3.png"):
        (tmp_path / name).touch()
    (tmp_path / "groups.csv").write_text(
        "name,skin\n1.png,dark\n0.png,light\n2.png,dark\n3.png,gray\n"
    )
    groups = read_groups(tmp_path, inputs(3, suffix=".png"), "skin", SeedChoice(first=3))
    assert groups_of(groups) == ["light", "dark", "dark"]


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
