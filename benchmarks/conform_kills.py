"""Whether a conformance run that is killed finds what it finds otherwise.

    python benchmarks/conform_kills.py [--kills 20] [--models 1024] [--rng-seed 0]

One run is left in peace. Others, as many as there are kills, are killed with SIGKILL at a moment
drawn between their begin and their end, the host and all its processes at once, and resumed. Their
documents have to be equal to the first one's, but for the seconds, and for the smallest models of
findings that do not count: some kernels leave a result without values unwritten, and what is in
memory there differs from process to process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

_TIMED = ("seconds",)
"""Keys that say how long it took."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="runs that are killed (default: 20)")
    parser.add_argument("--models", type=int, default=1024, help="of each run (default: 1024)")
    parser.add_argument("--rng-seed", type=int, default=0, help="of the moments (default: 0)")
    parser.add_argument("--ops", default=None, help="as of `edgeflare conform`")
    options = parser.parse_args()
    rng = np.random.default_rng(options.rng_seed)
    asked = ["--models", str(options.models)]
    asked += ["--ops", options.ops] if options.ops else []
    with tempfile.TemporaryDirectory(prefix="edgeflare-kills-") as name:
        folder = Path(name)
        begin = time.monotonic()
        _finish(folder / "whole", asked)
        seconds = time.monotonic() - begin
        expected = _document(folder / "whole")
        print(f"left in peace: {seconds:.0f} s, {len(expected['findings'])} findings", flush=True)
        equal = 0
        for number in range(1, options.kills + 1):
            run = folder / f"killed-{number}"
            moment = float(rng.uniform(0, seconds))
            resumed = _killed(run, asked, moment)
            same = _document(run) == expected
            equal += same
            what = "killed" if resumed else "had ended"
            print(
                f"{number}: {what} after {moment:.1f} s: {'equal' if same else 'OTHER'}", flush=True
            )
        print(f"{equal} of {options.kills} equal")
    sys.exit(equal != options.kills)


def _killed(run: Path, asked: Sequence[str], moment: float) -> bool:
    """Kill a run at a moment and finish it; return whether it was still running."""
    process = subprocess.Popen(
        _command(run, asked),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _finish(run, [*asked, "--resume"] if _has_begun(run) else [*asked, "--overwrite"])
        return True
    return False


def _has_begun(run: Path) -> bool:
    """Return whether there is a journal to go on with."""
    if not (run / "conform.db").exists():
        return False
    with closing(sqlite3.connect(run / "conform.db")) as db:
        return bool(db.execute("PRAGMA user_version").fetchone()[0])


def _finish(run: Path, asked: Sequence[str]) -> None:
    done = subprocess.run(_command(run, asked), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(_command(run, asked))} ended in {done.returncode}: {done.stderr}")


def _command(run: Path, asked: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "edgeflare", "conform", *asked, "--out", str(run), "--quiet"]


def _document(run: Path) -> dict[str, Any]:
    known = json.loads((run / "conform.json").read_bytes())
    for finding in known["findings"]:
        if not finding["counted"]:
            del finding["smallest"]
    return {key: value for key, value in known.items() if key not in _TIMED}


if __name__ == "__main__":
    main()
