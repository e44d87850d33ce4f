"""A search as it was asked for on the command line, on a fleet."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgeflare.campaign.plan_defaults import require_seed_ids, taken_seeds
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.fleet_session import UNDONE, fleet_session, offered_line, saying_where
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import naming_other_host
from edgeflare.cli.search_launch import RequestedSearch, search_exit_code
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.fleet_work import FleetWork
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_request import FleetRequest
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
from edgeflare.record.folder import remove_ours
from edgeflare.report.run_figures import refinement_bound
from edgeflare.report.run_page import print_run
from edgeflare.run.load_document import load_document
from edgeflare.run.merge.merge_runs import merge_in_groups
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.run.seed_ids import SeedIds
from edgeflare.untrusted_text import printable

_SCREENING: Final = given_run("screening")
_SCREENED: Final = "screening-"
"""Begins the names of units that evaluate seeds."""

_SEARCHED: Final = "unit-"
"""Begins the names of units that search from seeds."""

_REST: Final = "rest"
"""What belongs to no seed: `--test` and `--coverage`, which the merged run measures."""

_WITHOUT: Final = frozenset({"--seed-ids", "--screening", "--fail-on", "--allow"})
_WITHOUT_FLAGS: Final = frozenset({"--screen-only", "--quiet"})


def search_on_fleet(
    asked: RequestedSearch,
    devices: Sequence[str],
    options: FleetOptions,
    allow: float,
    *,
    unit_seeds: int | None,
    dry_run: bool,
) -> int:
    """Search on a fleet, print what was found, and return the exit code.

    Args:
        asked: the search.
        devices: what `--device` names: one class.
        options: options of the fleet.
        allow: share of the seeds that may deviate before the exit code is 1.
        unit_seeds: how many seeds a unit has; None for a few units for each device.
        dry_run: say what would be done, and do nothing.

    Raises:
        UserError: the search cannot be done as it was asked for.
        InfrastructureError: the cluster is not reached, or no device is left.

    """
    if len(devices) > 1 or is_matrix(devices):
        raise UserError(
            "--fleet shares the seeds out over the devices of one class: name one with --device"
        )
    if asked.screen_only or asked.screening is not None:
        raise UserError("--fleet makes and hands on the screening itself: leave it out")
    if asked.plan.total_queries is not None or asked.plan.total_time is not None:
        raise UserError(
            "--total-queries and --total-time bound all seeds together, and units of a fleet cannot"
            " know their share: bound each seed with --max-queries or --time-limit"
        )
    path = asked.folder.choose(asked.pair.folder_name)
    words = user_words(sys.argv[2:], without=_WITHOUT, without_flags=_WITHOUT_FLAGS)
    search = FleetSearch(asked, devices[0], options, unit_seeds, path, words)
    if dry_run:
        for line in search.look_lines():
            Console().print(printable(line), markup=False, highlight=False, soft_wrap=True)
        return 0
    document, ended = search.run()
    if document is None:
        sys.stderr.write(
            f"stopped before the seeds were evaluated; the same command with --out {path} --resume"
            " goes on\n"
        )
        return INTERRUPTED
    print_run(Console(), document, str(path))
    result(path)
    if ended and document.stopped_by is not None:
        raise InfrastructureError(f"{path} lacks a part of the seeds: --resume goes on")
    return search_exit_code(document, asked.fail_on, allow) if ended else INTERRUPTED


@dataclass(frozen=True, slots=True)
class FleetSearch:
    """A search on a fleet.

    Attributes:
        asked: the search.
        device_class: class of the devices on which it runs.
        options: options of the fleet.
        unit_seeds: how many seeds a unit has; None for a few units for each device.
        out: the run directory.
        words: what the user said of it, but for where it runs.

    """

    asked: RequestedSearch
    device_class: str
    options: FleetOptions
    unit_seeds: int | None
    out: Path
    words: tuple[str, ...]

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked.

        Raises:
            UserError: the fleet has no such devices, or the pair is not what it should be.

        """
        work = self._work()
        offered = offered_line(work, self.device_class)
        parts = self._parts(len(work.fleet.places(work.classes)))
        searched = [seeds for name, seeds in parts.items() if name.startswith(_SEARCHED)]
        units = len(searched)
        one = self._units(parts, _SEARCHED)[0]
        return [
            offered,
            f"{len(parts) - units} units evaluate the seeds, {units} search from them",
            f"each unit that searches: edgeflare {shown_command(one.command)}",
            refinement_bound(self.asked.plan, sum(map(len, searched))),
            f"would write {self.out} and {work.folder.path}; nothing was written",
        ]

    def run(self) -> tuple[RunDocument | None, bool]:
        """Search on the fleet, its progress shown.

        Returns:
            The merged run's document, None where nothing is done, and whether it came to its end.

        Raises:
            UserError: the search cannot be done as it was asked for.
            InfrastructureError: the cluster is not reached, or no device is left.

        """
        work = self._work()
        if work.resume and work.folder.is_of(work.request) and self._is_done(work.folder):
            return load_document(RunDirectory(self.out)), True
        with fleet_session(work, "the units that run, and merging what is done") as runs:
            try:
                ended = self._run_all(runs)
            except UNDONE as lost:
                if not self._try_to_merge(runs):
                    raise
                raise saying_where(lost, self.out) from None
            return self._merge(runs), ended

    def _try_to_merge(self, runs: UnitRuns) -> bool:
        """Merge what is done as something else has failed, which is what the user has to hear."""
        try:
            return self._merge(runs) is not None
        except UNDONE:
            return False

    def _is_done(self, folder: FleetFolder) -> bool:
        """Tell whether an earlier command has done all, and what it has made lies there."""
        parts = folder.kept_parts()
        if parts is None or not folder.output.is_made(self.out):
            return False
        rest = [_REST] if self.asked.test is not None or self.asked.plan.coverage else []
        return all(folder.ending(name) is not None for name in (*parts, *rest))

    def _run_all(self, runs: UnitRuns) -> bool:
        """Evaluate the seeds, search from them, and measure the rest; whether all is done."""
        runs.goes_on = f"the same command with --out {self.out} --resume"
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
        if self.asked.test is None and not self.asked.plan.coverage:
            return True
        merged = self._merge(runs)
        if merged is None or merged.stopped_by != "merge":
            return True
        whole = archive_folder(self.out)
        if whole is not None and runs.folder.backup(_REST) is None:
            runs.folder.keep_backup(_REST, whole)
        return runs.run([WorkUnit(_REST, self.device_class, self._command(), backed_up=False)])

    def _screening(self, runs: UnitRuns, screened: Sequence[WorkUnit]) -> bytes:
        """Return the answers to all seeds, as the archive of one run."""
        parts = [runs.folder.unit(unit.name) for unit in screened]
        whole = parts[0]
        if len(parts) > 1:
            whole = runs.folder.inner("screening")
            allowed = self.asked.folder.allow_other_host
            with naming_other_host():
                merge_in_groups(parts, whole, overwrite=True, allow_other_host=allowed)
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
        gate = ("--fail-on", self.asked.fail_on)
        how = ("--screening", _SCREENING) if searches else ("--screen-only", *gate)
        return [
            WorkUnit(
                name,
                self.device_class,
                self._command("--seed-ids", str(ids), *how),
                ids if searches else None,
            )
            for name, ids in parts.items()
            if name.startswith(kind)
        ]

    def _work(self) -> FleetWork:
        classes = (self.device_class,)
        plan, how = self.asked.plan, self.asked.folder
        files = (self.asked.pair.fingerprint(), str(self.asked.test))
        return self.options.work(
            classes,
            FleetRequest(classes, ("search",), files, plan),
            FleetFolder.beside(self.out),
            resume=how.resume,
            overwrite=how.overwrite,
            places=(self.out,),
        )

    def _parts(self, places: int) -> dict[str, SeedIds]:
        """Return the seeds of each unit, by its name."""
        asked, plan = self.asked, self.asked.plan
        seeds = taken_seeds(asked.pair, plan)
        require_seed_ids(plan, seeds, asked.pair.name)
        searched = search_parts(plan.seed_ids or seeds, places, self.unit_seeds)
        return {
            **_numbered(_SCREENED, screening_parts(seeds, places)),
            **_numbered(_SEARCHED, searched),
        }

    def _merge(self, runs: UnitRuns) -> RunDocument | None:
        """Merge what is done; the screening stands for the seeds that no unit has come to.

        Returns:
            The merged run's document; None where nothing is done.

        """
        folder = runs.folder
        if folder.ending(_REST) is not None:
            folder.output.put(runs.outputs[self.out], folder.unit(_REST))
            return load_document(RunDirectory(self.out))
        done = sorted((folder.path / "units").glob(f"{_SEARCHED}*"))
        if self.asked.plan.seed_ids is None:
            done += sorted((folder.path / "units").glob(f"{_SCREENED}*"))
        if not done:
            return None
        allowed = self.asked.folder.allow_other_host
        merged = folder.inner("merged")
        with naming_other_host():
            document = merge_in_groups(done, merged, overwrite=True, allow_other_host=allowed)
        folder.output.put(runs.outputs[self.out], merged)
        remove_ours(merged)
        return document


def _numbered(kind: str, parts: Iterable[SeedIds]) -> dict[str, SeedIds]:
    return {f"{kind}{at:04d}": ids for at, ids in enumerate(parts)}
