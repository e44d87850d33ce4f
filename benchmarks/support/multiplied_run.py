"""The findings of a real run, multiplied: what a search stores, in a number that is made up.

For `benchmarks/merge_size.py` and `benchmarks/fleet_simulation.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from edgeflare.run.seed_rows import KEYS

_KEY_PLACE = {"answers": 1, "marks": 1}
"""Which column of a table is the seed's id, where it is not the first."""


class MultipliedRun:
    """The findings of a run under further seed ids."""

    def __init__(self, path: Path, findings: int) -> None:
        """Read a run, whose findings are to be so many in all."""
        self._directory = RunDirectory(path)
        journal = RunJournal.open(self._directory.journal)
        self._about = journal.about()
        self._rows = {table: list(journal.seed_rows.each(table)) for table in KEYS}
        self._found = sorted(row[0] for row in self._rows["triggers"])
        self._answered = sorted(row[1] for row in self._rows["answers"] if row[0] == "seed")
        self._all = findings
        journal.close()

    def write_part(self, path: Path, seed_ids: range, *, with_inputs: bool) -> None:
        """Write a run with the findings from some seeds."""
        self._write_rows(path, seed_ids, self._found, KEYS)
        for folder in ("findings", "refined", "seeds") if with_inputs else ():
            (path / folder).mkdir()
            self._link(path / folder, seed_ids)

    def write_screening(self, path: Path, seed_ids: range) -> None:
        """Write a run with the answers to some seeds, from none of which it searched."""
        self._write_rows(path, seed_ids, self._answered, ("answers",))

    def _write_rows(
        self, path: Path, seed_ids: range, sources: Sequence[int], tables: Iterable[str]
    ) -> None:
        ids = SeedIds.of(seed_ids)
        plan = {**self._about["plan"], "seed_ids": str(ids)}
        labels = [0] * self._all
        about = {**self._about, "plan": plan, "seeds": len(ids), "labels": labels}
        about |= {"all_seeds": self._all, "names": []}
        path.mkdir()
        directory = RunDirectory(path)
        journal = RunJournal.create(directory.journal, about)
        with journal.transaction():
            for table in tables:
                journal.seed_rows.insert(table, self._multiplied(table, seed_ids, sources))
        journal.close()

    def _multiplied(
        self, table: str, seed_ids: range, sources: Sequence[int]
    ) -> Iterator[tuple[Any, ...]]:
        rows: dict[int, list[tuple[Any, ...]]] = {}
        place = _KEY_PLACE.get(table, 0)
        for row in self._rows[table]:
            if table == "nearness":
                rows.setdefault(int(Path(row[0]).stem), []).append(row)
            elif row[0] != "canary":
                rows.setdefault(row[place], []).append(row)
        for seed_id in seed_ids:
            source = sources[seed_id % len(sources)]
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
