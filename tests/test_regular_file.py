from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular
from edgeflare.run.json_file import compiled, load_json


def test_what_is_read_is_bounded_and_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 100) == b"x" * 100
    with pytest.raises(UserError, match="is larger than"):
        read_regular(path, 99)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UserError, match="is not a regular file"):
            read_regular(other, 100)
    for absent in (tmp_path, tmp_path / "absent"):
        with pytest.raises(OSError, match="directory"):
            read_regular(absent, 100)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_names_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="is the name of no file"):
        read_regular(tmp_path / name, 100)


def test_no_document_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(UserError, match="is not a regular file"):
        load_json(tmp_path / "run.json", compiled({"properties": {}}))
