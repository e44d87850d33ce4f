"""A job of a fleet: units of work, and where that is put which they make."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.fleet.cluster.ray_cluster import cluster
from edgeflare.fleet.fleet_file import DevicePlace, FleetHosts
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetRequest, FleetState
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.pages.facts import count_of
from edgeflare.record.folder import FolderKind
from edgeflare.run.run_directory import RUN

_UNDONE: Final = (EdgeFlareError, OSError)
"""What ends a job before all is done; what is done is kept, and may be gone on with."""


class JobEnd(NamedTuple):
    """How a job has ended.

    Attributes:
        complete: whether all is done, and the user has not stopped it before.
        kept: whether anything that was done lies in its place.

    """

    complete: bool
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob(ABC):
    """What is asked of a fleet.

    Attributes:
        out: the folder that comes of it.
        hosts: where it is done.
        classes: classes of devices that units run on.
        resume: whether it goes on with what is there.
        overwrite: whether it replaces what is there.

    """

    out: Path
    hosts: FleetHosts
    classes: tuple[str, ...]
    resume: bool = False
    overwrite: bool = False

    stopping: ClassVar[str] = "the units that run"
    """What is still done after Ctrl-C, in words."""

    @property
    @abstractmethod
    def request(self) -> FleetRequest:
        """What is asked, by which is known what may go on."""

    @abstractmethod
    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked.

        Raises:
            UserError: the fleet has no such devices, or the pair is not what it should be.

        """

    @abstractmethod
    def run_all(self, runs: UnitRuns) -> bool:
        """Run all units; return whether they are done, which the user may have stopped before."""

    @abstractmethod
    def put_all(self, runs: UnitRuns, lying: Collection[str]) -> bool:
        """Put what is done into its place; return whether anything is.

        Args:
            runs: what ran the units.
            lying: as `lying` returned it before any unit ran.

        """

    @property
    def folder(self) -> FleetFolder:
        """What comes of the units, beside what is made."""
        return FleetFolder.beside(self.out)

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders that what units make replaces."""
        return (self.out,)

    @property
    def kind(self) -> FolderKind:
        """Kind of `places`."""
        return RUN

    @property
    def goes_on(self) -> str:
        """What the user types to go on after it was stopped."""
        return f"the same command with --out {self.out} --resume"

    def lying(self) -> Collection[str]:
        """Return the units whose results lie in their places already, and stay as they are."""
        return ()

    def is_done(self) -> bool:
        """Tell whether an earlier command has done all, and what it has made lies there."""
        return False

    def offered(self, classes: Sequence[str] = ()) -> tuple[DevicePlace, ...]:
        """Return the devices of some classes, or of all classes of the job.

        Raises:
            UserError: the fleet has none, or `fleet.toml` says what it must not.

        """
        return self.hosts.offering(self.classes).places(classes or self.classes)

    def require_unchanged(self) -> None:
        """Refuse a run that is to be gone on with, and that somebody else has changed."""
        if self.resume and self.folder.is_of(self.request):
            self.folder.output.require_unchanged(self.places)

    def run(self, runs: UnitRuns) -> JobEnd:
        """Run all units, and put what they make into its place; also where something fails.

        Raises:
            InfrastructureError: no device is left, or a disk is full; says how to go on, and where
                that lies which is done.

        """
        runs.goes_on = self.goes_on
        try:
            lying = self.lying()
            try:
                complete = self.run_all(runs)
            except _UNDONE as lost:
                if not self._try_to_put(runs, lying) or isinstance(lost, UserError):
                    raise
                raise InfrastructureError(f"{lost}; what is done is in {self.out}") from None
            return JobEnd(complete, self.put_all(runs, lying))
        except (InfrastructureError, OSError) as lost:
            on = "" if runs.goes_on in str(lost) else f"; {runs.goes_on} goes on"
            raise InfrastructureError(f"{lost}{on}") from lost

    def _try_to_put(self, runs: UnitRuns, lying: Collection[str]) -> bool:
        """Put what is done as something else has failed, which is what the user has to hear."""
        try:
            return self.put_all(runs, lying)
        except _UNDONE:
            return False


@contextmanager
def opened_fleet(
    job: FleetJob,
    *,
    stopped: Callable[[], bool],
    urgent: Callable[[], bool],
    shown: Callable[[FleetState], None],
) -> Iterator[UnitRuns]:
    """Yield what runs a job's units: its folder claimed, the cluster joined, its hosts alike.

    At the end, what people see says that the command has ended.

    Args:
        job: what is done.
        stopped: whether the user wants to stop.
        urgent: whether the user wants to stop at once.
        shown: is called after each change of the state.

    Raises:
        UserError: the fleet has no such devices, the folder holds other work, or the hosts differ.

    """
    fleet, request, folder = job.hosts.offering(job.classes), job.request, job.folder
    devices = fleet.places(job.classes)
    with ExitStack() as stack:
        claimed = folder.claim(request, resume=job.resume, overwrite=job.overwrite)
        stack.callback(claimed.close)
        stack.callback(folder.remove_unused)
        # Claimed before the work begins, so that they are there in the end.
        outputs = {
            place: stack.enter_context(
                job.kind.claim(
                    place, overwrite=job.overwrite or job.resume, by="a command with --fleet"
                )
            )
            for place in job.places
        }
        with cluster(job.hosts.address, fleet):
            from edgeflare.fleet.cluster.ray_engine import RayEngine  # noqa: PLC0415 - an extra

            engine = RayEngine(fleet, job.classes, request.campaign)
            engine.require_same_versions()
            if not job.resume:
                folder.begin(request, [*outputs])
            runs = UnitRuns(
                engine=engine,
                folder=folder,
                outputs=outputs,
                state=FleetState(request.campaign),
                places=devices,
                cwd=os.getcwd(),
                stopped=stopped,
                urgent=urgent,
                shown=shown,
            )
            try:
                yield runs
            finally:
                runs.end()


def offered_line(job: FleetJob) -> str:
    """Return how many devices of a job's class there are, and on which hosts.

    Raises:
        UserError: the fleet has none.

    """
    places = job.offered()
    return f"{count_of(len(places), 'device')} of the class {job.classes[0]}, on {hosts_of(places)}"


def hosts_of(places: Sequence[DevicePlace]) -> str:
    """Return the hosts of some devices, in words."""
    return ", ".join(dict.fromkeys(place.host for place in places))
