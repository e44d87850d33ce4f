"""What it takes to merge runs with very many findings: seconds, and the most memory.

With `--rows-only` the rows of the journals are merged, without files and without `run.json`.

A real run is made first, of a pair, and its findings are multiplied: each gets further seed ids, as
many as are asked for, with all its rows and files. So rows and files are what a search stores, and
only their number is made up. They are shared out over parts, which are merged in a process of its
own.

    python benchmarks/merge_size.py PAIR --findings 20000
    python benchmarks/merge_size.py PAIR --findings 1000000 --parts 20 --rows-only
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.run.merge.merge_runs import find_owners, merge_rows, merge_runs, opened_parts
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from multiplied_run import MultipliedRun

_SEARCHED = ("--first", "40", "--max-queries", "300", "--find", "compression", "--fail-on", "none")


def main(
    pair: Annotated[Path, typer.Argument(help="A pair folder whose seeds lead to findings.")],
    findings: Annotated[int, typer.Option(help="How many the merged run has.")] = 100_000,
    parts: Annotated[int, typer.Option(help="How many runs are merged.")] = 20,
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Merge the journals' rows alone.")
    ] = False,
) -> None:
    """Print seconds and memory of a merge."""
    with TemporaryDirectory(prefix="edgeflare-merge-") as made:
        folder = Path(made)
        command = [sys.executable, "-m", "edgeflare", "search", str(pair), *_SEARCHED, "--quiet"]
        subprocess.run([*command, "--out", str(folder / "run")], check=True)
        begun = time.monotonic()
        run = MultipliedRun(folder / "run", findings)
        paths = [folder / f"part-{at:03d}" for at in range(parts)]
        for at, path in enumerate(paths):
            run.write_part(path, range(at, findings, parts), with_inputs=not rows_only)
        print(f"{findings:,} findings in {parts} parts made in {time.monotonic() - begun:.0f} s")
        child = os.fork()
        if not child:
            begun = time.monotonic()
            if rows_only:
                _merge_rows(paths, folder / "merged")
            else:
                merge_runs(paths, folder / "merged", overwrite=False)
            print(f"merged in {time.monotonic() - begun:.1f} s", flush=True)
            os._exit(0)
        _, status, used = os.wait4(child, 0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"exit status {status}; {used.ru_maxrss / 1024:,.0f} MiB at most"
            f" ({before / 1024:,.0f} before the merge)"
        )


def _merge_rows(paths: list[Path], out: Path) -> None:
    out.mkdir()
    with ExitStack() as stack:
        opened = opened_parts(paths, stack, allow_other_host=False)
        with closing(RunJournal.create(RunDirectory(out).journal, {})) as journal:
            merge_rows(opened, find_owners(opened), journal)


if __name__ == "__main__":
    typer.run(main)
