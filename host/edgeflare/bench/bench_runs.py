"""Run the campaigns of a bench, each in a run directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from edgeflare.bench.grid import BenchRun, Grid, check_pairs
from edgeflare.campaign.campaign_record import describe_run, run_recorded_campaign
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.search_checks import require_searchable
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.record.folder import FolderKind, is_free
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.load_document import load_document
from edgeflare.run.run_differences import require_same
from edgeflare.run.run_directory import DOCUMENT, RunDirectory, files_of, what_is_in
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal

Watch = Callable[[BenchRun], AbstractContextManager[Observer]]
"""Shows the progress of a campaign while the context lasts."""


def run_grid(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    *,
    chains: int,
    watch: Watch,
    interrupt: Interrupt,
) -> Iterator[tuple[BenchRun, RunDocument]]:
    """Run the campaigns of a bench one after the other; yield each that reached its end.

    Models and device are opened once for each pair. Campaigns that have ended in the folder, which
    `check_folder` let pass, are not run again, and one that was stopped goes on. Once the user
    wants to stop, no other begins.

    Raises:
        UserError: a pair is not what it should be, or `out` leads out of itself by a link.

    """
    check_pairs(pairs)
    for pair in pairs:
        if interrupt.asked():
            return
        cells = list(grid.cells(pair))
        if not cells:
            continue
        with ExitStack() as stack:
            opened = open_grid_pair(grid, pair, stack)
            for cell in cells:
                require_searchable(opened, cell.plan)
            for cell in cells:
                if interrupt.asked():
                    return
                path = RunDirectory(out).inside(str(cell.run / DOCUMENT)).parent
                list_as(out, cell.run.as_posix(), FOLDER)
                document = _run_cell(cell, opened, path, chains, watch, interrupt)
                if document.stopped_by is None:
                    yield cell, document


def open_grid_pair(grid: Grid, pair: Pair, stack: ExitStack) -> OpenedPair:
    """Open what the campaigns on a pair share: its models and the device; see `open_pair`."""
    return open_pair(pair, grid.plan, [find_profile(grid.device, grid.trust)], stack)


def check_folder(out: Path, *, resume: bool, holds: str = "bench") -> None:
    """Refuse a folder that a bench, or what else consists of its runs, must not write to.

    Raises:
        UserError: it is a file, or holds something and that is not to go on, or is of another
            command.

    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if resume and (other := what_is_in(out)) not in (None, holds):
        raise UserError(
            f"{out} holds a {other}, and no {holds}: name another folder with --out, and leave out"
            " --resume"
        )
    if not resume and not is_free(out):
        raise UserError(
            f"{out} is not empty: go on with the {holds} in it with --resume, or name another "
            "folder with --out"
        )


@contextmanager
def claimed_folder(out: Path, *, resume: bool, holds: str = "bench") -> Iterator[None]:
    """Make or take the folder of a bench, which no other process works in meanwhile.

    Raises:
        UserError: as of `check_folder`, or another process works there.

    """
    check = partial(check_folder, out, resume=resume, holds=holds)
    with FolderKind(holds, files=files_of(holds)).take(out, check):
        yield


def _run_cell(
    cell: BenchRun, opened: OpenedPair, path: Path, chains: int, watch: Watch, interrupt: Interrupt
) -> RunDocument:
    header = describe_run(opened, cell.plan)
    if (finished := _finished(RunDirectory(path), header)) is not None:
        return finished
    if RunDirectory(path).journal.exists():
        _, journal = resume_run(path, header)
    else:
        _, journal = begin_run(path, header, len(opened.seeds), overwrite=False)
    with closing(journal), watch(cell) as observer:
        return run_recorded_campaign(
            opened,
            header.plan,
            journal,
            observer=observer,
            interrupt=interrupt,
            chains=chains,
        )


def _finished(directory: RunDirectory, header: RunHeader) -> RunDocument | None:
    """Return the document of a run that reached its end, or None.

    What another device has made counts, if it is alike in all that decides answers: a fleet's
    devices of one class have a name each.
    """
    if not directory.document.exists():
        return None
    document = load_document(directory)
    if document.stopped_by is not None:
        return None
    with closing(RunJournal.open(directory.journal)) as journal:
        begun = RunHeader.from_json(journal.about())
        require_same(begun, header, str(directory.path))
    return document
