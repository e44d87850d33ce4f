from __future__ import annotations

import re
import subprocess
import sys

from edgeflare.devices.remote.names import is_stale, new_name

_SAY_A_NAME = "from edgeflare.devices.remote.names import new_name; print(new_name(), flush=True)"


def test_names_differ_and_suit_any_file_system() -> None:
    first, second = new_name(), new_name()
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{12}-\d+-\w+-[0-9a-f]{8}", first)


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
    host, pid, start, rest = new_name().split("-")
    assert is_stale(f"{host}-{pid}-{int(start) - 1}-{rest}")


def test_what_others_named_is_theirs() -> None:
    host, rest = new_name().split("-", 1)
    other = host[::-1] if host != host[::-1] else "0" * 12
    gone = f"{2**22 + 1}-1-{rest[-8:]}"
    assert is_stale(f"{host}-{gone}")
    for name in (f"{other}-{gone}", "thesis", "", "-", f"{host}-x-1-a", f"{host}"):
        assert not is_stale(name)
