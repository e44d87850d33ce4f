"""One of the runs that are merged, open for reading, and whether it may be merged with others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.run.journal import HELD_OUT_KEY, Journal
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.run_differences import RunDifference, differences
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from edgeflare.run.same_run import OtherHostError
from edgeflare.run.screening_rows import SCREENING_KEY
from edgeflare.run.seed_ids import SeedIds
from edgeflare.run.survey_rows import SURVEY_KEY

_MAY_DIFFER: Final = frozenset({"seed_ids", "device"})
"""Options in which parts of one run may differ: two devices that are alike have different names."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run that is merged.

    Attributes:
        directory: its run directory.
        journal: open, in a transaction, so that it stays as it is while it is read.
        about: what its journal says of it.
        header: what run it is.
        seed_ids: the seeds that it searches, or searched.

    """

    directory: RunDirectory
    journal: Journal
    about: Mapping[str, Any]
    header: RunHeader
    seed_ids: SeedIds

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.directory.path)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of its devices."""
        return self.header.plan.devices

    @property
    def is_finished(self) -> bool:
        """Whether all its seeds were searched, and what was found verified."""
        return self.about.get("stopped_by", "killed") in (None, "merge")


@contextmanager
def open_part(path: Path) -> Iterator[RunPart]:
    """Open a run that is merged.

    Raises:
        UserError: there is no run, it is damaged, or it is none of a search.

    """
    directory = RunDirectory(path)
    with closing(Journal.open(directory.journal)) as journal, journal.transaction():
        with reporting_damage(directory.journal):
            about = journal.about()
            header = RunHeader.from_json(about)
            ids = header.seed_ids or SeedIds.first(int(about["seeds"]))
        for key, what in (("replay", "replay"), (SURVEY_KEY, "survey")):
            if about.get(key):
                raise UserError(f"{path} is a {what}: merge takes runs of `edgeflare search`")
        yield RunPart(directory, journal, about, header, ids)


def require_mergeable(parts: Sequence[RunPart], *, allow_other_host: bool) -> None:
    """Refuse runs that are not parts of one.

    Args:
        parts: the runs.
        allow_other_host: whether hosts may differ in what decides their answers.

    Raises:
        OtherHostError: hosts differ.
        UserError: two runs are of other pairs, plans, devices or versions; names both, and the
            first difference.

    """
    first = parts[0]
    for other in parts[1:]:
        for found in differences(first.header, other.header, ignored=_MAY_DIFFER):
            if found.of != "host":
                raise UserError(_refusal(first, other, found))
            if not allow_other_host:
                raise OtherHostError(
                    f"{first.name} and {other.name} were made on different hosts, with"
                    f" {found.name} {found.one} and {found.other}, which may have answered"
                    " differently: make the one again on the host of the other"
                )
        for what, one, two in _further(first, other):
            if one != two:
                raise UserError(
                    f"{first.name} and {other.name} are no parts of one run: {what} differs"
                    f"{f' ({one}, {two})' if isinstance(one, str) else ''}; merge runs of one"
                    " command that differ in --seed-ids only"
                )


def _further(one: RunPart, other: RunPart) -> Iterator[tuple[str, object, object]]:
    """Yield what has to be equal beside plan, pair, devices and hosts."""
    mine, theirs = one.header, other.header
    yield "the version of edgeflare", mine.version, theirs.version
    yield "how outputs are read", mine.to_json()["arms"], theirs.to_json()["arms"]
    yield "the number of devices", len(mine.devices), len(theirs.devices)
    yield "the number of seeds", mine.all_seeds, theirs.all_seeds
    yield "what --test gives", _held_out(one), _held_out(other)
    screened, by = one.about.get(SCREENING_KEY), other.about.get(SCREENING_KEY)
    if screened is not None and by is not None:
        yield "the screening", screened[:12], by[:12]


def _held_out(part: RunPart) -> str:
    return str((part.about.get(HELD_OUT_KEY) or {}).get("sha256", "nothing"))[:12]


def _refusal(one: RunPart, other: RunPart, found: RunDifference) -> str:
    if found.of == "pair":
        return (
            f"{one.name} and {other.name} are of different pairs ({found.one}, {found.other}, or"
            " other files or preprocessing): merge runs of one pair"
        )
    return (
        f"{one.name} and {other.name} are no parts of one run, with {found.name} {found.one} in the"
        f" one and {found.other} in the other: merge runs of one command that differ in --seed-ids"
        " only"
    )
