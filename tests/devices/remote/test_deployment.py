"""What is sent to a device, and the names of what runs there."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import process_names as names
from edgeflare.devices.remote.deployment import agent_code, target_of
from edgeflare.devices.remote.process_names import is_own, is_stale, new_name
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


_SAY_A_NAME = (
    "from edgeflare.devices.remote.process_names import new_name; print(new_name(), flush=True)"
)


def test_names_differ_and_suit_any_file_system() -> None:
    first, second = new_name(), new_name()
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]{6}-\d+-\w+-[0-9a-f]{8}", first)


def test_a_name_is_stale_once_its_process_has_ended() -> None:
    command = [sys.executable, "-c", f"{_SAY_A_NAME}; input()"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not is_stale(name)
        process.kill()
        process.wait()
        assert is_stale(name)
    assert not is_stale(new_name())


def test_a_number_that_is_used_again_is_another_process() -> None:
    host, boot, pid, start, rest = new_name().split("-")
    assert is_stale(f"{host}-{boot}-{pid}-{int(start) - 1}-{rest}")


def test_what_was_named_before_the_host_started_anew_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "machine-id").write_text("0" * 32)
    (tmp_path / "boot-id").write_text("first")
    monkeypatch.setattr(names, "_MACHINE_ID", tmp_path / "machine-id")
    monkeypatch.setattr(names, "_BOOT_ID", tmp_path / "boot-id")
    name = new_name()
    assert is_own(name)
    assert not is_stale(name)
    (tmp_path / "boot-id").write_text("second")
    assert not is_own(name)
    assert is_stale(name)

    # Without an identity of its own a host may be any other of that name.
    (tmp_path / "machine-id").unlink()
    name = new_name()
    (tmp_path / "boot-id").write_text("third")
    assert not is_stale(name)


def test_what_others_named_is_theirs() -> None:
    host, boot, rest = new_name().split("-", 2)
    other = host[::-1] if host != host[::-1] else "0" * 12
    gone = f"{boot}-{2**22 + 1}-1-{rest[-8:]}"
    assert is_stale(f"{host}-{gone}")
    for name in (f"{other}-{gone}", "thesis", "", "-", f"{host}-{boot}-x-1-a", f"{host}"):
        assert not is_stale(name)
