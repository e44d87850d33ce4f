"""The command line: parse, call, print.

What reads or checks options raises UserError, or what Typer shows as one, where they cannot be
what they are; a command raises what the rooms raise that it calls. The docstrings within leave that
out, unless there is more to say.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from typing import Final, cast

from typer import Abort, BadParameter

from edgeflare.crash_report import keep_traceback
from edgeflare.errors import EdgeFlareError
from edgeflare.signal_errors import handled_errors, signal_errors
from edgeflare.untrusted_text import for_terminal

_UsageError = cast("type[BadParameter]", BadParameter.__base__)
"""What Typer raises for whatever it cannot read. Whether its Click is its own or the package click
depends on its version, so the base of what it exports is asked for."""


_LONGEST = 4000
"""Most characters of a line that says what was wrong; its beginning and its end stay."""

# Some versions of Typer have pydantic check values, whose sentences are about an "input".
_SENTENCES: Final = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"Input should be greater than or equal to (\S+)", r"expected \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"expected \1 or less"),
    (r"Input should be ", "expected "),
    (
        r"(No such option: --json)(?!\w).*",
        r"\1: `edgeflare report RUN --json` prints what a run has written",
    ),
)
"""What Typer says of options, and the words of ours that stand for it."""


def main() -> None:
    """Run the command line; errors are one line on stderr, and an exit code that says whose."""
    before, threading.excepthook = threading.excepthook, _thread_failed
    try:
        # Here, so that Ctrl-C is heeded while it is imported.
        from edgeflare.cli.app import app  # noqa: PLC0415

        with signal_errors(handled_errors(signal.SIGINT)):
            code = app(prog_name="edgeflare", standalone_mode=False)
    except EdgeFlareError as error:
        _complain(str(error))
        code = error.exit_code
    except OSError as error:
        # A disk that is full or gone may show wherever a run is written.
        _complain(str(error))
        code = 3
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx else "edgeflare"
        # A command that was called without any arguments has printed its help, and says nothing.
        if message := error.format_message().rstrip("."):
            _complain(f"{reworded(message)}; see `{command} --help`")
        code = 2
    except (Abort, KeyboardInterrupt) as stop:
        from edgeflare.cli.interruptible import stopped_by  # noqa: PLC0415

        _complain(f"stopped by {stopped_by(stop)}")
        code = 130
    except Exception as error:
        # Python's own exit code would be 1, which says that something deviates.
        _complain(_said_of(error))
        code = 3
    finally:
        threading.excepthook = before
    sys.exit(code or 0)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        _complain(_said_of(failed.exc_value))


def _said_of(error: BaseException) -> str:
    from edgeflare.cli.address_space import is_shortage  # noqa: PLC0415

    if is_shortage(error):
        return (
            f"there is not enough memory ({' '.join(str(error).split())[:200] or 'none is left'}):"
            " raise the limit, or give less to do at once"
        )
    return (
        f"unexpected {type(error).__name__}: {str(error)[:200]}; this is a mistake in edgeflare, "
        f"report it with the traceback in {keep_traceback(error)}"
    )


def reworded(complaint: str) -> str:
    """Return a complaint of Typer in plain words; one that is in plain words stays as it is."""
    for theirs, ours in _SENTENCES:
        complaint = re.sub(theirs, ours, complaint)
    return complaint


def _complain(message: str) -> None:
    line = for_terminal(" ".join(message.split()))
    if len(line) > _LONGEST:  # it may repeat what somebody wrote
        line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
    sys.stderr.write(f"edgeflare: {line}\n")
