"""The parts of a bundle: targets, pins, Debian's packages, wheels, libraries, and the tree."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.bundle.bundle_target import TARGETS, find_target, native_target
from edgeflare.devices.bundle.packages import (
    fetch_python,
    fetch_wheels,
    pin_runtime,
    requirements,
    wheel_files,
    wheel_licences,
)
from edgeflare.devices.bundle.tree import is_elf, needed_libraries, pack_tree, unpack_tree
from edgeflare.errors import InfrastructureError, UserError


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_is_found_by_its_name(name: str) -> None:
    assert find_target(name).name == name


def test_an_unknown_target_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match=r"linux-arm64.*linux-aarch64, linux-x86_64, android-arm64"):
        find_target("linux-arm64")


@pytest.mark.parametrize(
    ("machine", "target"),
    [("x86_64", "linux-x86_64"), ("aarch64", "linux-aarch64"), ("arm64", "linux-aarch64")],
)
def test_a_machine_runs_the_programs_of_its_own_target(machine: str, target: str) -> None:
    assert native_target(machine).name == target


def test_other_machines_cannot_make_bundles() -> None:
    with pytest.raises(UserError, match="riscv64"):
        native_target("riscv64")


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("said", "pinned"),
    [
        ("litert==1.4.0", "ai-edge-litert==1.4.0"),
        ("ai-edge-litert==2.3.0", "ai-edge-litert==2.3.0"),
        ("tflite-runtime", "tflite-runtime==2.14.0"),
        ("tflite-runtime==2.13.0", "tflite-runtime==2.13.0"),
    ],
)
def test_a_runtime_becomes_a_package_and_its_version(said: str, pinned: str) -> None:
    assert pin_runtime(said) == pinned


def test_litert_alone_is_the_one_of_the_host() -> None:
    assert pin_runtime("litert") == f"ai-edge-litert=={version('ai-edge-litert')}"


@pytest.mark.parametrize("said", ["", "tflite", "litert==", "litert>=2", "numpy==1"])
def test_anything_else_is_refused_by_name(said: str) -> None:
    with pytest.raises(UserError, match="expected litert or tflite-runtime"):
        pin_runtime(said)


@pytest.mark.parametrize("python", [(3, 10), (3, 11), (3, 13)])
def test_the_pins_are_those_that_the_project_is_tested_with(python: tuple[int, int]) -> None:
    tested = (ROOT / "constraints.txt").read_text().splitlines()
    runtime, *others = requirements("ai-edge-litert==2.3.0", python)

    assert runtime == "ai-edge-litert==2.3.0"
    for pin in others:
        if pin.startswith("numpy"):
            marker = "python_version " + ('< "3.11"' if python < (3, 11) else '>= "3.11"')
            assert f"{pin}; {marker}" in tested
        else:
            assert pin in tested


def test_those_of_the_old_runtime_are_those_of_the_old_board() -> None:
    tested = (ROOT / "constraints-old-board.txt").read_text().splitlines()

    assert set(requirements("tflite-runtime==2.14.0", (3, 11))) <= set(tested)


def test_the_old_runtime_needs_an_old_python() -> None:
    with pytest.raises(UserError, match=r"needs Python 3.11 or less.*has 3.13.*Debian 12"):
        requirements("tflite-runtime==2.14.0", (3, 13))


AARCH64 = find_target("linux-aarch64")


def programs(folder: Path, **scripts: str) -> str:
    """A PATH with these programs and the shell's own."""
    folder.mkdir()
    for name, script in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


def test_without_apt_the_user_is_told_where_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path / "bin"))
    with pytest.raises(UserError, match=r"apt-get is not on this machine.*container of Debian"):
        fetch_python(AARCH64, tmp_path / "apt")


ABSENT = "echo 'E: Unable to locate package python3'; exit 100"


def test_sources_without_that_architecture_are_the_users_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'[ "$1" = update ] || {{ {ABSENT}; }}'
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", apt_get=script, dpkg_deb=""))
    with pytest.raises(UserError, match=r"no Python for arm64.*container of Debian"):
        fetch_python(AARCH64, tmp_path / "apt")


def test_sources_that_cannot_be_reached_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"[ \"$1\" != update ] || {{ echo 'W: Could not resolve host'; exit; }}; {ABSENT}"
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", apt_get=script, dpkg_deb=""))
    with pytest.raises(InfrastructureError, match="Could not resolve host"):
        fetch_python(AARCH64, tmp_path / "apt")


def wheel(folder: Path, *names: str) -> Path:
    """A wheel whose files say their own names."""
    path = folder / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return path


def test_what_the_agent_never_reads_stays_out(tmp_path: Path) -> None:
    path = wheel(
        tmp_path,
        "thing/__init__.py",
        "thing/core.so",
        "thing/tests/test_core.py",
        "thing/__init__.pyi",
        "ai_edge_litert/libLiteRtWebGpuAccelerator.so",
        "ai_edge_litert/vendors/qualcomm/compiler/libLiteRtCompilerPlugin_Qualcomm.so",
        "ai_edge_litert/libLiteRt.so",
        "thing-1.0.dist-info/METADATA",
        "thing-1.0.dist-info/RECORD",
    )

    assert {name for name, _ in wheel_files(path)} == {
        "thing/__init__.py",
        "thing/core.so",
        "ai_edge_litert/libLiteRt.so",
        "thing-1.0.dist-info/METADATA",  # that is where the runtime's version is read
    }


def test_files_of_the_data_folder_go_where_pip_puts_them(tmp_path: Path) -> None:
    path = wheel(tmp_path, "thing-1.0.data/purelib/thing/pure.py", "thing-1.0.data/scripts/thing")

    assert dict(wheel_files(path)) == {"thing/pure.py": b"thing-1.0.data/purelib/thing/pure.py"}


def test_licence_texts_are_found(tmp_path: Path) -> None:
    path = wheel(
        tmp_path,
        "thing/license_of_users.py",
        "thing-1.0.dist-info/LICENSE",
        "thing-1.0.dist-info/licenses/COPYING.lesser",
        "thing-1.0.dist-info/METADATA",
    )

    assert {name for name, _ in wheel_licences(path)} == {"LICENSE", "COPYING.lesser"}


def test_where_there_is_none_the_metadata_names_the_licence(tmp_path: Path) -> None:
    path = wheel(tmp_path, "thing/__init__.py", "thing-1.0.dist-info/METADATA")

    assert [name for name, _ in wheel_licences(path)] == ["METADATA"]


def python_that_prints(folder: Path, text: str) -> str:
    """A program that stands for a Python whose pip fails with these words."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho '{text}'\nexit 1\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "error", "expected"),
    [
        (
            "ERROR: No matching distribution found for ai-edge-litert==9",
            UserError,
            r"no ai-edge-litert==9 for Python 3.11 on aarch64 with glibc 2.36; name another",
        ),
        ("/usr/bin/python: No module named pip", UserError, "has no pip.*-m ensurepip"),
        (
            "ERROR: Could not install: the network is unreachable",
            InfrastructureError,
            "cannot fetch packages: .*network is unreachable",
        ),
    ],
)
def test_each_failure_of_pip_is_one_line(
    words: str,
    error: type[Exception],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", python_that_prints(tmp_path, words))
    with pytest.raises(error, match=expected) as failure:
        fetch_wheels(["ai-edge-litert==9"], AARCH64, (3, 11), (2, 36), tmp_path)

    assert "\n" not in str(failure.value)


FILES = [Path(sys.executable), *Path(grpc.__file__).parent.glob("_cython/cygrpc*.so")]


@pytest.mark.parametrize("path", FILES, ids=["program", "library"])
def test_the_libraries_are_those_that_the_loader_looks_for(path: Path) -> None:
    needed = needed_libraries(path.read_bytes())
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout

    assert "libc.so.6" in needed
    for name in needed:
        assert name in listed


def test_what_is_no_program_is_seen_to_be_none() -> None:
    assert is_elf(FILES[0].read_bytes())
    assert not is_elf(b"#!/bin/sh\n")
    assert not is_elf(Path(grpc.__file__).read_bytes())


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
