"""The command line: parse, call, print."""

from __future__ import annotations

import sys

import click

from edgeflare.cli.app import app
from edgeflare.errors import EdgeFlareError


def main() -> None:
    """Run the command line; errors are one line on stderr, and an exit code that says whose."""
    try:
        code = app(standalone_mode=False)
    except EdgeFlareError as error:
        _complain(str(error))
        code = error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "edgeflare"
        _complain(f"{error.format_message().rstrip('.')}; see `{command} --help`")
        code = 2
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped")
        code = 130
    sys.exit(code or 0)


def _complain(message: str) -> None:
    sys.stderr.write(f"edgeflare: {' '.join(message.split())}\n")
