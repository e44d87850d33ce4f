from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.trust.asking import decided_by_user
from edgeflare.trust.request import Request
from edgeflare.trust.trust import KEPT_ONLY

REQUEST = Request("pair.toml names \x1b[2J:predict", {"file": b"text"})

ASK = """
from edgeflare.trust.asking import decided_by_user
from edgeflare.trust.request import Request
request = Request("pair.toml names \\x1b[2J:predict", {"file": b"text"})
raise SystemExit(0 if decided_by_user(False).allows(request) else 5)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(("answer", "trusted"), [(b"y\n", True), (b"\n", False), (b"n\n", False)])
def test_a_terminal_is_asked_and_a_yes_is_kept(answer: bytes, trusted: bool) -> None:
    here, there = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", ASK], stdin=there, stderr=there)
    os.close(there)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(here, 1000)
    os.write(here, answer)
    assert (process.wait(200) == 0) == trusted
    os.close(here)
    assert rb"pair.toml names \x1b[2J:predict" in said
    assert b"\x1b" not in said
    assert REQUEST.sha256.encode() in said
    assert KEPT_ONLY.allows(REQUEST) == trusted


def test_without_a_terminal_nobody_is_asked() -> None:
    process = subprocess.run([sys.executable, "-c", ASK], input=b"y\n", timeout=300, check=False)
    assert process.returncode == 5


def test_the_option_is_a_yes_that_is_kept() -> None:
    assert decided_by_user(True).allows(REQUEST)
    assert KEPT_ONLY.allows(REQUEST)
