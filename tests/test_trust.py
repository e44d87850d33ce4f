"""What the user has agreed to, and how a terminal is asked."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.errors import UserError
from edgeflare.trust import (
    KEPT_ONLY,
    Request,
    Trust,
    decided_by_user,
    granted,
    is_trusted,
    keep,
    store_path,
)

contents = st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def yes(keeps: bool) -> Trust:
    return Trust(lambda _request: True, keeps)


@given(one=contents, other=contents)
def test_what_is_trusted_is_known_by_all_its_contents(
    one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    assert (Request("x", one).sha256 == Request("y", other).sha256) == (one == other)


def test_nothing_is_trusted_unless_the_user_says_so() -> None:
    request = Request("pair.toml names net.py:predict", {"pair.toml": b"text"})
    with pytest.raises(UserError, match=r"names net\.py:predict, which needs your trust.*--trust"):
        KEPT_ONLY.require(request)
    with pytest.raises(UserError):
        granted(False).require(request)


def test_a_kept_yes_holds_for_the_same_contents_alone() -> None:
    request = Request("it", {"file": b"text"})
    yes(keeps=True).require(request)
    assert KEPT_ONLY.allows(request)
    assert KEPT_ONLY.allows(Request("the same elsewhere", {"file": b"text"}))
    assert not KEPT_ONLY.allows(Request("it", {"file": b"changed"}))


def test_a_yes_in_python_is_not_kept() -> None:
    request = Request("it", {"file": b"text"})
    granted(True).require(request)
    assert not KEPT_ONLY.allows(request)
    assert not store_path().exists()


def test_a_yes_is_not_kept_where_the_code_cannot_be_told() -> None:
    request = Request("it", {"file": b"text"}, complete=False)
    yes(keeps=True).require(request)
    assert not KEPT_ONLY.allows(request)


def test_a_home_that_cannot_be_written_to_keeps_nothing_and_stops_nothing(home: Path) -> None:
    home.write_text("a file, where the folder would be")
    request = Request("it", {"file": b"text"})
    yes(keeps=True).require(request)
    assert not KEPT_ONLY.allows(request)


def test_the_file_is_the_users_alone_and_holds_all_that_was_kept() -> None:
    keep("a", "the first")
    keep("b", "the second")
    assert is_trusted("a")
    assert is_trusted("b")
    assert not is_trusted("c")
    assert store_path().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in store_path().parent.iterdir()] == ["trusted.json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": "other", "trusted": {"a": "x"}}'])
def test_a_damaged_file_trusts_nothing(text: str) -> None:
    store_path().parent.mkdir(parents=True)
    store_path().write_text(text)
    assert not is_trusted("a")
    keep("a", "it")
    assert is_trusted("a")


REQUEST = Request("pair.toml names \x1b[2J:predict", {"file": b"text"})

ASK = """
from edgeflare.trust import decided_by_user
from edgeflare.trust import Request
request = Request("pair.toml names \\x1b[2J:predict", {"file": b"text"})
raise SystemExit(0 if decided_by_user(False).allows(request) else 5)
"""


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
