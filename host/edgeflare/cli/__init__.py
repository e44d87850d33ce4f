"""The command line: parse, call, print."""

from __future__ import annotations

import sqlite3
import sys
from typing import cast

from typer import Abort, BadParameter

from edgeflare.cli.wording import reworded
from edgeflare.errors import EdgeFlareError

_UsageError = cast("type[BadParameter]", BadParameter.__base__)
"""What Typer raises for whatever it cannot read. Whether its Click is its own or the package click
depends on its version, so the base of what it exports is asked for."""


def main() -> None:
    """Run the command line; errors are one line on stderr, and an exit code that says whose."""
    try:
        # Here, since it takes a second in which Ctrl-C should be heeded too.
        from edgeflare.cli.app import app  # noqa: PLC0415

        code = app(prog_name="edgeflare", standalone_mode=False)
    except EdgeFlareError as error:
        _complain(str(error))
        code = error.exit_code
    except (OSError, sqlite3.Error) as error:
        # A disk that is full or gone may show wherever a run is written.
        _complain(str(error))
        code = 3
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx else "edgeflare"
        # A command that was called without any arguments has printed its help, and says nothing.
        if message := error.format_message().rstrip("."):
            _complain(f"{reworded(message)}; see `{command} --help`")
        code = 2
    except (Abort, KeyboardInterrupt):
        _complain("stopped")
        code = 130
    sys.exit(code or 0)


def _complain(message: str) -> None:
    sys.stderr.write(f"edgeflare: {' '.join(message.split())}\n")
