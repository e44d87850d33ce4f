from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.bundle.tree import pack_tree, unpack_tree

NAMES = st.text("abc", min_size=1, max_size=3)
TREES = st.dictionaries(
    st.tuples(NAMES, NAMES).map(lambda pair: f"d{pair[0]}/f{pair[1]}"), st.binary()
)


@given(tree=TREES)
def test_what_is_packed_is_unpacked(
    tree: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    pack_tree(tree, folder / "packed.tar.gz")
    unpack_tree(folder / "packed.tar.gz", folder / "out")

    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    assert {str(path.relative_to(folder / "out")): path.read_bytes() for path in files} == tree


@given(tree=TREES)
def test_equal_trees_are_equal_files(
    tree: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    pack_tree(tree, folder / "one.tar.gz")
    mask = os.umask(0o077)
    try:
        pack_tree(dict(reversed(tree.items())), folder / "two.tar.gz")
    finally:
        os.umask(mask)

    assert (folder / "one.tar.gz").read_bytes() == (folder / "two.tar.gz").read_bytes()


def test_programs_and_scripts_are_executable_and_nothing_else_is(tmp_path: Path) -> None:
    program = Path("/proc/self/exe").read_bytes()
    pack_tree({"p": program, "s": b"#!/bin/sh\n", "t": b"text"}, tmp_path / "packed.tar.gz")
    unpack_tree(tmp_path / "packed.tar.gz", tmp_path)

    assert os.access(tmp_path / "p", os.X_OK)
    assert os.access(tmp_path / "s", os.X_OK)
    assert not stat.S_IMODE((tmp_path / "t").stat().st_mode) & 0o111


def test_it_belongs_to_nobody_and_no_time(tmp_path: Path) -> None:
    pack_tree({"d/file": b"text"}, tmp_path / "packed.tar.gz")
    with tarfile.open(tmp_path / "packed.tar.gz") as archive:
        (member,) = archive.getmembers()

    assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
    assert member.mtime == 315532800


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unfit"):
        pack_tree(Unfit(), tmp_path / "packed.tar.gz")

    assert list(tmp_path.iterdir()) == []


class Unfit(dict[str, bytes]):
    """A tree whose second file cannot be read."""

    def __init__(self) -> None:
        super().__init__({"a": b"a", "b": b"b"})

    def __getitem__(self, name: str) -> bytes:
        if name == "b":
            raise ValueError("unfit")
        return super().__getitem__(name)
