"""What is sent to a device."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from edgeflare.devices.profile import Profile
from edgeflare.devices.remote.deployment import agent_code, target_of
from edgeflare.errors import UserError


def test_the_same_code_gives_the_same_file(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    made = []
    for folder in folders:
        folder.mkdir()
        made.append(agent_code(folder))
    assert made[0].sha256 == made[1].sha256
    content = made[0].file.read_bytes()
    assert content == made[1].file.read_bytes()
    assert made[0].sha256 == hashlib.sha256(content).hexdigest()


def test_unpacked_anywhere_it_runs_the_agent_with_the_python_that_it_is_told(
    tmp_path: Path,
) -> None:
    payload = agent_code(tmp_path)
    folder = tmp_path / "it's here"
    with tarfile.open(payload.file) as archive:
        names = archive.getnames()
        archive.extractall(folder)  # noqa: S202 - which was just made
    assert "agent" in names
    assert not [name for name in names if name.endswith((".pyc", ".pyi"))]
    script = "import sys, edgeflare_agent; print(edgeflare_agent.__file__, sys.argv[1:])"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" -c "{script}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [folder / "agent", "--port", "0"],
        env={**os.environ, "EDGEFLARE_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == f"{folder}/edgeflare_agent/__init__.py ['--port', '0']\n"


@pytest.mark.parametrize(
    ("transport", "machine", "target"),
    [
        ("ssh", "aarch64", "linux-aarch64"),
        ("ssh", "x86_64", "linux-x86_64"),
        ("adb", "aarch64", "android-arm64"),
    ],
)
def test_the_machine_says_which_bundle(transport: str, machine: str, target: str) -> None:
    assert target_of(Profile(name="x", transport=transport), machine) == target


@pytest.mark.parametrize(
    ("transport", "machine", "words"),
    [
        ("ssh", "armv7l", r"32-bit system \(armv7l\).*tflite-runtime 2\.14.*armv7l.*python = "),
        ("adb", "armv8l", r"32-bit system"),
        ("ssh", "riscv64", r"riscv64, but bundles exist for .*aarch64.*name it in the profile"),
        ("adb", "x86_64", r"x86_64, but bundles exist for .*emulator image with an arm64"),
    ],
)
def test_a_machine_without_a_bundle_is_told_what_to_do(
    transport: str, machine: str, words: str
) -> None:
    with pytest.raises(UserError, match=words) as refused:
        target_of(Profile(name="x", transport=transport), machine)
    assert "\n" not in str(refused.value)
