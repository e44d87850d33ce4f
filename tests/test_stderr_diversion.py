"""What C libraries write to stderr by themselves."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from edgeflare.stderr_diversion import STDERR, diverted_stderr


def test_what_is_written_meanwhile_goes_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "said").open("w+b") as file:
        with suppress(KeyError), diverted_stderr(file.fileno()):
            os.write(STDERR, b"kept\n")
            raise KeyError
        with diverted_stderr():
            os.write(STDERR, b"lost\n")
        os.write(STDERR, b"heard\n")
        file.seek(0)
        assert file.read() == b"kept\n"
    assert capfd.readouterr().err == "heard\n"
