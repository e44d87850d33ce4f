"""A fleet that is ready for units: its folder claimed, its cluster joined, its hosts alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeflare.fleet.cluster.ray_cluster import cluster
from edgeflare.fleet.fleet_file import Fleet
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_request import FleetRequest
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.record.folder import ClaimedFolder, FolderKind
from edgeflare.run.run_directory import RUN


@dataclass(frozen=True, slots=True)
class FleetWork:
    """What is done on a fleet.

    Attributes:
        address: address of the cluster's head, or `LOCAL`.
        fleet: the fleet's hosts.
        classes: classes of devices that units run on.
        request: what is asked, by which is known what may go on.
        folder: the folder for what comes of it.
        resume: whether it goes on with what is there.
        overwrite: whether it replaces what is there.
        places: folders that it is put into in the end, instead of what is there.
        kind: what kind of folders `places` are.

    """

    address: str
    fleet: Fleet
    classes: tuple[str, ...]
    request: FleetRequest
    folder: FleetFolder
    resume: bool = False
    overwrite: bool = False
    places: tuple[Path, ...] = ()
    kind: FolderKind = RUN

    def claimed(self, place: Path) -> ClaimedFolder:
        """Claim one of the places before the work begins, so that it is there in the end.

        Raises:
            UserError: somebody else's files are there, or another process works there.

        """
        replaces = self.overwrite or self.resume
        return self.kind.claim(place, overwrite=replaces, by="a command with --fleet")


@contextmanager
def opened_fleet(
    work: FleetWork,
    *,
    stopped: Callable[[], bool],
    urgent: Callable[[], bool],
    shown: Callable[[FleetState], None],
) -> Iterator[UnitRuns]:
    """Yield what runs units; at the end, what people see says that the command has ended.

    Args:
        work: what is done.
        stopped: whether the user wants to stop.
        urgent: whether the user wants to stop at once.
        shown: is called after each change of the state.

    Raises:
        UserError: the fleet has no such devices, the folder holds other work, or the hosts differ.
        InfrastructureError: the cluster is not reached.

    """
    devices = work.fleet.places(work.classes)
    with ExitStack() as stack:
        claimed = work.folder.claim(work.request, resume=work.resume, overwrite=work.overwrite)
        stack.callback(claimed.close)
        stack.callback(work.folder.remove_unused)
        outputs = {one: stack.enter_context(work.claimed(one)) for one in work.places}
        with cluster(work.address, work.fleet):
            from edgeflare.fleet.cluster.ray_engine import RayEngine  # noqa: PLC0415 - an extra

            engine = RayEngine(work.fleet, work.classes, work.request.campaign)
            engine.require_same_versions()
            if not work.resume:
                work.folder.begin(work.request, [*outputs])
            runs = UnitRuns(
                engine=engine,
                folder=work.folder,
                outputs=outputs,
                state=FleetState(work.request.campaign),
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
