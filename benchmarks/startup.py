"""What the command line takes before it does anything: processor time, the least of some starts.

    python benchmarks/startup.py [PAIR] [--python PYTHON]... [--starts N]

In turns with each PYTHON (an environment that imports edgeflare, so that two commits can be
compared). The last row is a search with one query, on emulated-xnnpack: models and device are
opened, and a run is written. Processor time is that of all processes, since it depends little on
what else the machine does. Bytecode is kept in a folder of its own, which a start beforehand fills:
a machine on which none is written compiles every module anew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

PAIR = Path(__file__).parents[1] / "examples" / "fashion_lenet4"
COMMANDS = {
    "python": ("-c", "pass"),
    "import typer": ("-c", "import typer"),
    "edgeflare --version": ("-m", "edgeflare", "--version"),
    "edgeflare --help": ("-m", "edgeflare", "--help"),
    "edgeflare search --help": ("-m", "edgeflare", "search", "--help"),
}
SEARCH = (
    *("--device", "emulated-xnnpack", "--first", "1", "--max-queries", "1", "--shrink", "0"),
    *("--fail-on", "none", "--overwrite", "--out"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, nargs="?", default=PAIR, help="a pair folder")
    parser.add_argument("--python", action="append", help="environments that are compared")
    parser.add_argument("--starts", type=int, default=10, help="of each command")
    asked = parser.parse_args()
    pythons = [os.path.abspath(python) for python in asked.python or [sys.executable]]
    print(
        "| command | " + " | ".join(f"{number}: least, median s" for number in range(len(pythons)))
    )
    print("|---" * (1 + len(pythons)) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        search = ("-m", "edgeflare", "search", str(asked.pair.absolute()), *SEARCH)
        commands = {**COMMANDS, "a search with one query": (*search, str(Path(folder, "run")))}
        for name, arguments in commands.items():
            seconds = measured(pythons, arguments, asked.starts, Path(folder))
            cells = [f"{min(took):.3f}, {median(took):.3f}" for took in seconds]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def measured(
    pythons: Sequence[str], arguments: Sequence[str], starts: int, folder: Path
) -> list[list[float]]:
    """Return the processor seconds of each start, for each environment."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    seconds: list[list[float]] = [[] for _ in pythons]
    for start in range(starts + 1):
        for took, python in zip(seconds, pythons, strict=True):
            once = processor_seconds((python, *arguments), environment, folder)
            if start:
                took.append(once)
    return seconds


def processor_seconds(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> float:
    """Return what a command and all that it has started take.

    Raises:
        SystemExit: it fails.

    """
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
