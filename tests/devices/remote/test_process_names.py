from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.devices.remote import process_names as names
from edgeflare.devices.remote.process_names import is_own, is_stale, new_name

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
