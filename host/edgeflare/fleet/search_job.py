"""A search, whose seeds are shared out: units that evaluate seeds, then units that search."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from edgeflare.campaign.plan_defaults import require_seed_ids, taken_seeds
from edgeflare.errors import InfrastructureError
from edgeflare.fleet.fleet_job import FleetJob, offered_line
from edgeflare.fleet.record.fleet_state import FleetRequest
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.folder_archive import archive_folder
from edgeflare.fleet.work_units import (
    DEVICE,
    RESUME,
    RUN,
    WorkUnit,
    given_run,
    screening_parts,
    search_parts,
    shown_command,
)
from edgeflare.models.pair import Pair
from edgeflare.record.folder import remove_ours
from edgeflare.report.run_figures import refinement_bound
from edgeflare.run.load_document import load_document
from edgeflare.run.merge.merge_runs import merge_in_groups
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.seed_ids import SeedIds

_SCREENING: Final = given_run("screening")
_SCREENED: Final = "screening-"
"""Begins the names of units that evaluate seeds."""

_SEARCHED: Final = "unit-"
"""Begins the names of units that search from seeds."""

_REST: Final = "rest"
"""What belongs to no seed: `--test` and `--coverage`, which the merged run measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchJob(FleetJob):
    """A search on the devices of one class.

    Attributes:
        pair: what is searched.
        plan: how.
        test: inputs that are only evaluated; None for none.
        fail_on: deviations that make the exit code 1.
        unit_seeds: how many seeds a unit has; None for a few units for each device.
        words: what the user said of it, but for where it runs.
        allow_other_host: whether hosts with other processor features may have made parts of it.

    """

    pair: Pair
    plan: Plan
    test: Path | None
    fail_on: str
    unit_seeds: int | None
    words: tuple[str, ...]
    allow_other_host: bool

    stopping: ClassVar[str] = "the units that run, and merging what is done"

    @property
    def request(self) -> FleetRequest:
        """What is asked, by which is known what may go on."""
        files = (self.pair.fingerprint(), str(self.test))
        return FleetRequest(self.classes, ("search",), files, self.plan)

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked."""
        offered = offered_line(self)
        parts = self._parts(len(self.offered()))
        searched = [seeds for name, seeds in parts.items() if name.startswith(_SEARCHED)]
        units = len(searched)
        one = self._units(parts, _SEARCHED)[0]
        return [
            offered,
            f"units that evaluate the seeds: {len(parts) - units}; that search from them: {units}",
            f"each unit that searches: edgeflare {shown_command(one.command)}",
            refinement_bound(self.plan, sum(map(len, searched))),
            f"would write {self.out} and {self.folder.path}; nothing was written",
        ]

    def is_done(self) -> bool:
        """Tell whether an earlier command has done all, and what it has made lies there."""
        folder = self.folder
        if not (self.resume and folder.is_of(self.request) and folder.output.is_made(self.out)):
            return False
        parts, rest = folder.kept_parts(), [_REST] if self._has_rest else []
        return parts is not None and all(
            folder.ending(part) is not None for part in (*parts, *rest)
        )

    def run_all(self, runs: UnitRuns) -> bool:
        """Evaluate the seeds, search from them, and measure the rest; whether all is done."""
        parts = runs.folder.kept_parts()
        if parts is None:
            parts = self._parts(len(runs.places))
            runs.folder.keep_parts(parts)
        screened = self._units(parts, _SCREENED)
        runs.announce([*screened, *self._units(parts, _SEARCHED)])
        if not runs.run(screened):
            return False
        runs.given[_SCREENING] = self._screening(runs, screened)
        if not runs.run(self._units(parts, _SEARCHED)):
            return False
        if not self._has_rest:
            return True
        if not self.put_all(runs, ()):
            return True
        if load_document(RunDirectory(self.out)).stopped_by != "merge":  # the run is whole
            return True
        whole = archive_folder(self.out)
        if whole is not None and runs.folder.backup(_REST) is None:
            runs.folder.keep_backup(_REST, whole)
        return runs.run([WorkUnit(_REST, self.classes[0], self._command(), backed_up=False)])

    def put_all(self, runs: UnitRuns, lying: Collection[str]) -> bool:
        """Merge what is done; the screening stands for the seeds that no unit has come to."""
        del lying
        folder = runs.folder
        if folder.ending(_REST) is not None:
            folder.output.put(runs.outputs[self.out], folder.unit(_REST))
            return True
        done = sorted((folder.path / "units").glob(f"{_SEARCHED}*"))
        if self.plan.seed_ids is None:
            done += sorted((folder.path / "units").glob(f"{_SCREENED}*"))
        if not done:
            return False
        merged = folder.inner("merged")
        merge_in_groups(done, merged, overwrite=True, allow_other_host=self.allow_other_host)
        folder.output.put(runs.outputs[self.out], merged)
        remove_ours(merged)
        return True

    @property
    def _has_rest(self) -> bool:
        return self.test is not None or bool(self.plan.coverage)

    def _screening(self, runs: UnitRuns, screened: Sequence[WorkUnit]) -> bytes:
        """Return the answers to all seeds, as the archive of one run."""
        parts = [runs.folder.unit(unit.name) for unit in screened]
        whole = parts[0]
        if len(parts) > 1:
            whole = runs.folder.inner("screening")
            merge_in_groups(parts, whole, overwrite=True, allow_other_host=self.allow_other_host)
        archived = archive_folder(whole)
        if archived is None:
            raise InfrastructureError(f"{whole} is gone: begin again with --overwrite")
        return archived

    def _command(self, *more: str) -> tuple[str, ...]:
        # Ours come first, since a -- may be among the user's.
        quiet = ("--fail-on", "none", "--quiet")
        return ("search", "--device", DEVICE, "--out", RUN, RESUME, *quiet, *more, *self.words)

    def _units(self, parts: dict[str, SeedIds], kind: str) -> list[WorkUnit]:
        """Return the units of a kind: those that evaluate seeds, or that search from them."""
        searches = kind == _SEARCHED
        # What the gate needs to know of the seeds is asked before any of them is searched.
        gate = ("--fail-on", self.fail_on)
        how = ("--screening", _SCREENING) if searches else ("--screen-only", *gate)
        return [
            WorkUnit(
                name,
                self.classes[0],
                self._command("--seed-ids", str(ids), *how),
                ids if searches else None,
            )
            for name, ids in parts.items()
            if name.startswith(kind)
        ]

    def _parts(self, places: int) -> dict[str, SeedIds]:
        """Return the seeds of each unit, by its name."""
        seeds = taken_seeds(self.pair, self.plan)
        require_seed_ids(self.plan, seeds, self.pair.name)
        searched = search_parts(self.plan.seed_ids or seeds, places, self.unit_seeds)
        return {
            **_numbered(_SCREENED, screening_parts(seeds, places)),
            **_numbered(_SEARCHED, searched),
        }


def _numbered(kind: str, parts: Iterable[SeedIds]) -> dict[str, SeedIds]:
    return {f"{kind}{at:04d}": ids for at, ids in enumerate(parts)}
