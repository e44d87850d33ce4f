"""The command that starts Python, and what it is told to run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

LAUNCHER_VARIABLE = "EDGEFLARE_AGENT_LAUNCHER"

RUN_MODULE = (
    "import sys; sys.path[:] = [folder for folder in sys.path if folder]; "
    "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)
"""Program for `python -c`, followed by a module: what `-m` does, but for the working directory,
which `-m` would import modules from: it may be a stranger's. Python 3.11 has `-P` for that."""


def default_launcher() -> list[str]:
    """Return the command that starts Python: $EDGEFLARE_AGENT_LAUNCHER, else this interpreter.

    In a bundle that runs through its own dynamic loader `sys.executable` cannot be executed.
    """
    return shlex.split(os.environ.get(LAUNCHER_VARIABLE, "")) or [sys.executable]


def python_command(launcher: Sequence[str], module: str) -> list[str]:
    """Return the command that runs a module; its arguments come behind."""
    return [*launcher, "-c", RUN_MODULE, module]
