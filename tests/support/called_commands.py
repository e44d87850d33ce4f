"""The command called within the process of the tests, and what it answered."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from edgeflare.cli import main


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """The one line of an error, without its prefix."""
        (line,) = self.err.splitlines()
        assert line.startswith("edgeflare: ")
        return line.removeprefix("edgeflare: ")


def call_here(*arguments: str | Path) -> Said:
    """Call the command within this process, which saves the start of another."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["edgeflare", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, out.getvalue(), err.getvalue())
