"""Beginning a run in a run directory, or going on with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from edgeflare.record.journal import reporting_damage
from edgeflare.run.run_directory import DOCUMENT, RunDirectory
from edgeflare.run.run_header import RunHeader, differences, require_same
from edgeflare.run.run_journal import RunJournal

OTHER_HOSTS_KEY: Final = "other_hosts"
"""The key of `about` under which the journal has a line for each difference."""

SEVERAL_DEVICES: Final = "several devices that are alike answered under the name of the first"


def begin_run(
    path: Path,
    header: RunHeader,
    seeds: int,
    *,
    overwrite: bool,
    asked: Mapping[str, object] | None = None,
) -> tuple[RunDirectory, RunJournal]:
    """Begin a run.

    Args:
        path: the run directory; may be absent or empty.
        header: what run it is.
        seeds: how many seeds it has.
        overwrite: replace a run that is there.
        asked: what else the journal says of the run from the first, as plain JSON values.

    """
    about = {**header.to_json(), "seeds": seeds, **(asked or {})}
    directory, lock = RunDirectory.claim(path, overwrite=overwrite)
    return directory, RunJournal.create(directory.journal, about, lock=lock)


def resume_run(
    path: Path,
    header: RunHeader,
    require: Callable[[RunJournal], None] = lambda _: None,
    *,
    documents: Sequence[str] = (),
    allow_other_host: bool = False,
) -> tuple[RunDirectory, RunJournal]:
    """Go on with a run; one that is refused stays as it was.

    Args:
        path: the run directory.
        header: what run it is.
        require: refuses, given the journal in a transaction, what else is not as it was.
        documents: what else is written anew at its end, beside `run.json`.
        allow_other_host: whether another host may go on with it, which the run then says.

    Raises:
        UserError: there is no run, it is about something else than `header`, another process works
            on it, others have changed one of its documents, or `require` refuses it.

    """
    directory = RunDirectory(path)

    def go_on(journal: RunJournal) -> None:
        begun = _begun(journal, header, allow_other_host=allow_other_host)
        require(journal)
        # Until it stops again, the journal alone says what the run has found, and how it ended.
        journal.note("stopped_by", "killed")
        note_other_host(journal, begun, header)
        note_other_devices(journal, begun, header)

    return directory, RunJournal.resume(directory.journal, go_on, [DOCUMENT, *documents])


def require_resumable(
    path: Path,
    header: RunHeader,
    require: Callable[[RunJournal], None] = lambda _: None,
    *,
    allow_other_host: bool = False,
) -> None:
    """Refuse a run that `resume_run` refuses for what it is of, and write nothing.

    Args: as of `resume_run`.

    Raises:
        UserError: there is no run, it is about something else, or `require` refuses it.

    """
    with RunJournal.read(RunDirectory(path).journal) as journal:
        _begun(journal, header, allow_other_host=allow_other_host)
        require(journal)


def _begun(journal: RunJournal, header: RunHeader, *, allow_other_host: bool) -> RunHeader:
    """Return what run a journal is of; refuse one of another run than `header` says."""
    with reporting_damage(journal.path):
        about = journal.about()
        if "seeds" not in about:
            raise ValueError("it does not say how many seeds it has")
        begun = RunHeader.from_json(about)
        folder = str(journal.path.parent)
        require_same(begun, header, folder, allow_other_host=allow_other_host)
    return begun


def note_other_host(journal: RunJournal, begun: RunHeader, other: RunHeader) -> None:
    """Note in the journal of a run that another host worked on it, where that may matter."""
    known = journal.about().get(OTHER_HOSTS_KEY, [])
    if new := [line for line in other_host_lines(begun, other) if line not in known]:
        journal.note(OTHER_HOSTS_KEY, [*known, *new])


def note_other_devices(journal: RunJournal, begun: RunHeader, other: RunHeader) -> None:
    """Note in the journal of a run that devices of other names go on with it."""
    if begun.plan.devices == other.plan.devices:
        return
    names = "; ".join(", ".join(run_header.plan.devices) for run_header in (begun, other))
    line = f"{SEVERAL_DEVICES}: {names}"
    known = journal.about().get(OTHER_HOSTS_KEY, [])
    if line not in known:
        journal.note(OTHER_HOSTS_KEY, [*known, line])


def other_host_lines(one: RunHeader, other: RunHeader) -> list[str]:
    """Return a line for each difference of two hosts by which they may answer differently."""
    return [
        f"several hosts worked on this run, which differ in {apart.name} ({apart.one},"
        f" {apart.other}): original and twin may have answered differently on each"
        for apart in differences(one, other)
        if apart.of == "host"
    ]
