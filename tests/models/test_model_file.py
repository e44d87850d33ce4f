"""A model file is a regular file that has something in it, and no more than models have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.models.model_file import check_model_file, read_model_file


def made_of(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "absent":
        with path.open("wb") as file:
            file.truncate(2**32 + 1 if kind == "large" else 0)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("pipe", "is not a model file"),
        ("folder", "is not a model file"),
        ("absent", "there is no model file"),
        ("empty", "is empty"),
        ("large", "at most 4,294,967,296 are read"),
    ],
)
def test_what_is_no_model_file_is_not_read(
    kind: str, said: str, refusal: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "theirs.tflite"
    made_of(path, kind)
    assert said in refusal(read_model_file, path)
    assert said in refusal(check_model_file, path)


def test_a_model_file_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "ours.tflite"
    path.write_bytes(b"all of it")
    assert read_model_file(path) == b"all of it"
