"""Tests of edgeflare.survey.items.group_table: what a table says, and what is said of a bad one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.survey.items.group_table import groups_of_files

NAMES = ("0.png", "1.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*NAMES, "2.png"):
        (tmp_path / name).touch()
    return tmp_path


def write(folder: Path, table: str) -> Path:
    (folder / "groups.csv").write_text(table, "utf-8", newline="")
    return folder


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


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "no column 'name'; it has nothing"),
        ("names,who\n0.png,a\n", r"no column 'name' \(did you mean 'names'\?\)"),
        (
            "name,whom\n0.png,a\n",
            r"no column of that name \(did you mean 'whom'\?\); it has name, w",
        ),
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


def test_what_is_no_text_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"groups\.csv cannot be read"):
        groups_of_files(folder, NAMES, "who")
    for table in (b"name,who\n0.png,\xff\n", b"name,who\n0.png,\0\n"):
        (folder / "groups.csv").write_bytes(table)
        with pytest.raises(UserError, match=r"groups\.csv is no text"):
            groups_of_files(folder, NAMES, "who")


def test_a_file_is_no_column(folder: Path) -> None:
    with pytest.raises(UserError, match=r"expected the name of a column, of groups\.csv in"):
        groups_of_files(write(folder, "name,who\n0.png,a\n"), NAMES, "lights.csv")


def test_a_pipe_in_place_of_the_table_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "groups.csv")
    with pytest.raises(UserError, match=r"groups\.csv is not a regular file"):
        groups_of_files(folder, NAMES, "who")


def test_a_table_without_end_is_refused(folder: Path) -> None:
    with (folder / "groups.csv").open("wb") as file:
        file.truncate(2**28 + 1)
    with pytest.raises(UserError, match=r"groups\.csv is larger than 256 MiB"):
        groups_of_files(folder, NAMES, "who")
