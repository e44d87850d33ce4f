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
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from edgeflare.run.journal import Journal
from edgeflare.run.merge.merge_runs import merge_runs, opened_parts
from edgeflare.run.merge.merged_rows import merge_rows
from edgeflare.run.merge.seed_owners import find_owners
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.seed_ids import SeedIds
from edgeflare.run.seed_rows import KEYS

_SEARCHED = ("--limit", "40", "--max-queries", "300", "--find", "compression", "--fail-on", "none")
_KEY_PLACE = {"answers": 1, "marks": 1}
"""Which column of a table is the seed's id, where it is not the first."""


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
        run = _Multiplied(folder / "run", findings)
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
        with closing(Journal.create(RunDirectory(out).journal, {})) as journal:
            merge_rows(opened, find_owners(opened), journal)


class _Multiplied:
    """The findings of a run under further seed ids."""

    def __init__(self, path: Path, findings: int) -> None:
        """Read a run, whose findings are to be so many in all."""
        self._directory = RunDirectory(path)
        journal = Journal.open(self._directory.journal)
        self._about = journal.about()
        self._rows = {table: list(journal.seed_rows.each(table)) for table in KEYS}
        self._found = sorted(row[0] for row in self._rows["triggers"])
        self._all = findings
        journal.close()

    def write_part(self, path: Path, seed_ids: range, *, with_inputs: bool) -> None:
        """Write a run with the findings from some seeds."""
        ids = SeedIds.of(seed_ids)
        plan = {**self._about["plan"], "seed_ids": str(ids)}
        labels = [0] * self._all
        about = {**self._about, "plan": plan, "seeds": len(ids), "labels": labels}
        about |= {"all_seeds": self._all, "names": []}
        path.mkdir()
        directory = RunDirectory(path)
        journal = Journal.create(directory.journal, about)
        with journal.transaction():
            for table in KEYS:
                journal.seed_rows.insert(table, self._multiplied(table, seed_ids))
        journal.close()
        for folder in ("findings", "refined", "seeds") if with_inputs else ():
            (path / folder).mkdir()
            self._link(path / folder, seed_ids)

    def _multiplied(self, table: str, seed_ids: range) -> Iterator[tuple[Any, ...]]:
        rows: dict[int, list[tuple[Any, ...]]] = {}
        place = _KEY_PLACE.get(table, 0)
        for row in self._rows[table]:
            if table == "nearness":
                rows.setdefault(int(Path(row[0]).stem), []).append(row)
            elif row[0] != "canary":
                rows.setdefault(row[place], []).append(row)
        for seed_id in seed_ids:
            source = self._found[seed_id % len(self._found)]
            for row in rows.get(source, ()):
                named = tuple(
                    one.replace(f"/{source:06d}.", f"/{seed_id:06d}.")
                    if isinstance(one, str)
                    else one
                    for one in row
                )
                if table == "nearness":
                    yield named
                else:
                    yield (*named[:place], seed_id, *named[place + 1 :])

    def _link(self, folder: Path, seed_ids: range) -> None:
        (suffix,) = {path.suffix for path in (self._directory.path / folder.name).iterdir()}
        for seed_id in seed_ids:
            source = self._found[seed_id % len(self._found)]
            there = self._directory.path / folder.name / f"{source:06d}{suffix}"
            _copy_if_linked_too_often(there, folder / f"{seed_id:06d}{suffix}")


def _copy_if_linked_too_often(source: Path, link: Path) -> None:
    try:
        os.link(source, link)
    except OSError:
        link.write_bytes(source.read_bytes())


if __name__ == "__main__":
    typer.run(main)
