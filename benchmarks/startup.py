"""What the command line takes before it does anything: processor time, the least of ten starts.

    python benchmarks/startup.py

The last column is the ratio to `import typer`, which is not ours to save. Processor time, since
that depends little on what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys

STARTS = 10
EDGEFLARE = ("-c", "from edgeflare.cli import main; main()")
COMMANDS = {
    "python": ("-c", "pass"),
    "import typer": ("-c", "import typer"),
    "edgeflare --version": (*EDGEFLARE, "--version"),
    "edgeflare --help": (*EDGEFLARE, "--help"),
    "edgeflare search --help": (*EDGEFLARE, "search", "--help"),
}


def processor_seconds(arguments: tuple[str, ...]) -> float:
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    seconds = {
        name: min(processor_seconds(arguments) for _ in range(STARTS))
        for name, arguments in COMMANDS.items()
    }
    for name, least in seconds.items():
        print(f"{name:24} {least:6.3f} s {least / seconds['import typer']:6.2f}")


if __name__ == "__main__":
    main()
