"""A search as it was asked for on the command line, on a fleet."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import edgeflare
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, unit_command
from edgeflare.cli.interruptible import INTERRUPTED, interruptible
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.quiet import result
from edgeflare.cli.requested_search import RequestedSearch
from edgeflare.cli.search_exit_code import search_exit_code
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.ray_cluster import LOCAL, cluster
from edgeflare.fleet.plan.fleet_file import Fleet, local_fleet, read_fleet
from edgeflare.fleet.plan.work_units import WorkUnit, search_units
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.run_archive import archive_run, unpack_run
from edgeflare.fleet.work.unit_attempt import AttemptOrder
from edgeflare.report.run_terminal import print_run
from edgeflare.run.load_document import load_document
from edgeflare.run.merge.merge_runs import merge_runs
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.run.seed_ids import SeedIds
from edgeflare.untrusted_text import printable

BACKUP_SECONDS = 60.0
"""Between two backups of a unit's run to the head."""

_SCREENING: Final = WorkUnit("screening")
_REST: Final = WorkUnit("rest")
"""What belongs to no seed: `--test` and `--coverage`, which the merged run measures."""


def search_on_fleet(
    asked: RequestedSearch,
    devices: Sequence[str],
    options: FleetOptions,
    allow: float,
    *,
    dry_run: bool,
) -> int:
    """Search on a fleet, print what was found, and return the exit code.

    Args:
        asked: the search.
        devices: what `--device` names: one class.
        options: of the fleet.
        allow: share of the seeds that may deviate before the exit code is 1.
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
    search = FleetSearch(asked, devices[0], options, path)
    if dry_run:
        for line in search.look_lines():
            Console().print(printable(line), markup=False, highlight=False, soft_wrap=True)
        return 0
    document, ended = search.run()
    if document is None:
        sys.stderr.write("stopped before the seeds were evaluated; --resume goes on\n")
        return INTERRUPTED
    print_run(Console(), document, str(path))
    result(path)
    return search_exit_code(document, asked.fail_on, allow) if ended else INTERRUPTED


@dataclass(frozen=True, slots=True)
class FleetSearch:
    """A search on a fleet.

    Attributes:
        asked: the search.
        device_class: on which it runs.
        options: of the fleet.
        out: the run directory.

    """

    asked: RequestedSearch
    device_class: str
    options: FleetOptions
    out: Path

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked.

        Raises:
            UserError: the fleet has no such devices.

        """
        places = self._fleet().places(self.device_class)
        hosts = dict.fromkeys(place.host for place in places)
        command = " ".join(("edgeflare", *unit_command(sys.argv[1:])))
        return [
            f"{len(places)} devices of the class {self.device_class}, on {', '.join(hosts)}",
            f"each unit: {command} --seed-ids … --screening …",
            f"would write {self.out} and {FleetFolder.beside(self.out).path}; nothing was written",
        ]

    def run(self) -> tuple[RunDocument | None, bool]:
        """Search on the fleet, its progress shown.

        Returns:
            The merged run's document, None where nothing is done, and whether it came to its end.

        Raises:
            UserError: the search cannot be done as it was asked for.
            InfrastructureError: the cluster is not reached, or no device is left.

        """
        fleet = self._fleet()
        places = fleet.places(self.device_class)
        command = unit_command(sys.argv[1:])
        campaign = self._campaign(command)
        folder = FleetFolder.beside(self.out)
        how = self.asked.folder
        with (
            cluster(self.options.fleet or LOCAL, fleet),
            interruptible("the units that run, and merging what is done") as interrupt,
            shown_fleet(Console(stderr=True)) as show,
            ExitStack() as stack,
        ):
            from edgeflare.fleet.cluster.ray_engine import RayEngine  # noqa: PLC0415 - an extra

            engine = RayEngine(fleet, self.device_class, campaign)
            engine.require_same_versions()
            lock = folder.claim(campaign, resume=how.resume, overwrite=how.overwrite)
            stack.callback(os.close, lock)
            runs = UnitRuns(
                engine=engine,
                folder=folder,
                state=FleetState(campaign, self.device_class),
                places=places,
                order=partial(self._order, campaign, command),
                screening=None,
                stopped=interrupt.asked,
                urgent=interrupt.urgent,
                shown=show,
            )
            try:
                ended = self._run_all(runs, len(places))
            except (InfrastructureError, UserError) as lost:
                if self._merge(runs) is None:
                    raise
                raise type(lost)(f"{lost}; what is done is in {self.out}") from None
            finally:
                runs.end()
        return self._merge(runs), ended

    def _run_all(self, runs: UnitRuns, places: int) -> bool:
        """Evaluate the seeds, search from them, and measure the rest; whether all is done."""
        if not runs.run([_SCREENING]):
            return False
        runs.screening = archive_run(runs.folder.unit(_SCREENING.name))
        if not runs.run(self._units(runs.folder, places)):
            return False
        merged = self._merge(runs)
        if merged is None or merged.stopped_by != "merge":
            return True
        whole = archive_run(self.out)
        if whole is not None and runs.folder.backup(_REST.name) is None:
            runs.folder.keep_backup(_REST.name, whole)
        runs.screening = None
        return runs.run([_REST])

    def _order(
        self, campaign: str, command: tuple[str, ...], unit: WorkUnit, number: int, device: str
    ) -> AttemptOrder:
        return AttemptOrder(
            campaign=campaign,
            unit=unit.name,
            number=number,
            command=(command[0], "--screen-only", *command[1:]) if unit == _SCREENING else command,
            folder=os.getcwd(),
            seed_ids=None if unit.seed_ids is None else str(unit.seed_ids),
            device=device,
            backup_seconds=BACKUP_SECONDS,
        )

    def _fleet(self) -> Fleet:
        if self.options.fleet_file is not None:
            return read_fleet(self.options.fleet_file)
        return local_fleet(self.device_class, self.options.fleet_devices)

    def _campaign(self, command: tuple[str, ...]) -> str:
        chosen = str(self.asked.plan.seed_ids or "")
        told = (self.asked.pair.fingerprint(), self.device_class, edgeflare.__version__, chosen)
        return hashlib.sha256("\0".join((*told, *command)).encode()).hexdigest()[:16]

    def _units(self, folder: FleetFolder, places: int) -> list[WorkUnit]:
        if (kept := folder.kept_units()) is not None:
            return kept
        screened = folder.unit(_SCREENING.name)
        seeds = load_document(RunDirectory(screened)).totals.seeds
        chosen = self.asked.plan.seed_ids or SeedIds.first(seeds)
        units = search_units(chosen, places, self.options.unit_seeds)
        folder.keep_units(units)
        return units

    def _merge(self, runs: UnitRuns) -> RunDocument | None:
        """Merge what is done; the screening stands for the seeds that no unit has come to.

        Where nothing was done now, the run stays as it is, and what was made from it.

        Returns:
            The merged run's document; None where nothing is done.

        """
        folder = runs.folder
        if not runs.worked and RunDirectory(self.out).document.is_file():
            return load_document(RunDirectory(self.out))
        if folder.is_done(_REST.name):
            return adopt_run(folder.unit(_REST.name), self.out)
        done = sorted((folder.path / "units").glob("unit-*"))
        if self.asked.plan.seed_ids is None:
            done += [one for one in (folder.unit(_SCREENING.name),) if one.is_dir()]
        if not done:
            return None
        allowed = self.asked.folder.allow_other_host
        return merge_runs(done, self.out, overwrite=True, allow_other_host=allowed)


def adopt_run(made: Path, out: Path) -> RunDocument:
    """Put a run into the place of another, and return its document."""
    archived = archive_run(made)
    RunDirectory.claim(out, overwrite=True)
    if archived is not None:
        unpack_run(archived, out)
    return load_document(RunDirectory(out))


@contextmanager
def shown_fleet(console: RichConsole) -> Iterator[Callable[[FleetState], None]]:
    """Show one progress bar for all hosts; yields what is told of each change."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} seeds"),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("evaluating the seeds", total=1)

        def show(state: FleetState) -> None:
            units = [unit for unit in state.units if unit.seeds]
            if not units:
                return
            done = sum(unit.status == "done" for unit in units)
            found = sum(unit.found for unit in units)
            quarantined = sum(bool(place.quarantined) for place in state.places)
            lost = f", {quarantined} devices quarantined" if quarantined else ""
            progress.update(
                task,
                description=f"{done} of {len(units)} units, {found:,} found{lost}",
                completed=sum(unit.ended for unit in units),
                total=sum(unit.seeds for unit in units),
            )

        yield show
