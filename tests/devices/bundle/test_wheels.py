from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from edgeflare.devices.bundle.bundle_target import find_target
from edgeflare.devices.bundle.wheels import fetch_wheels, wheel_files, wheel_licences
from edgeflare.errors import InfrastructureError, UserError

AARCH64 = find_target("linux-aarch64")


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
