"""What is written to stderr is recorded, and goes where it went before once that has ended."""

from __future__ import annotations

import os
import tempfile

import pytest

from edgeflare_agent.runtime.recorded_stderr import recorded_stderr


def test_what_is_written_within_is_kept_and_stderr_is_as_before(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with recorded_stderr() as recorded:
        os.write(2, b"within\n")
        assert recorded.text == "within\n"
        os.write(2, b"no UTF-8: \xff\n")
    os.write(2, b"behind\n")
    assert recorded.text == "within\nno UTF-8: \ufffd\n"
    assert capfd.readouterr().err == "behind\n"


def test_no_folder_has_to_be_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at_all")
    before = os.listdir("/proc/self/fd")
    with recorded_stderr() as recorded:
        os.write(2, b"within\n")
    assert recorded.text == "within\n"
    assert os.listdir("/proc/self/fd") == before


def test_stderr_is_as_before_if_something_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), recorded_stderr():
        raise KeyError
    os.write(2, b"behind\n")
    assert capfd.readouterr().err == "behind\n"
