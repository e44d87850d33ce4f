"""One of the runs that are merged, open for reading, and whether it may be merged with others."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked
from edgeflare.record.journal import damaged_journal, reporting_damage
from edgeflare.run.begin_or_resume import OTHER_HOSTS_KEY
from edgeflare.run.journal_rows import SCREENING_KEY, NotedHealth, NotedReadings
from edgeflare.run.run_directory import INPUT_FOLDERS, RunDirectory
from edgeflare.run.run_header import OtherHostError, RunDifference, RunHeader, differences
from edgeflare.run.run_journal import HEALTH_KEY, HELD_OUT_KEY, RunJournal
from edgeflare.run.run_warnings import WARNINGS_KEY
from edgeflare.run.seed_ids import SeedIds
from edgeflare.run.survey_rows import SURVEY_KEY

_MAY_DIFFER: Final = frozenset({"--seed-ids", "--device"})
"""Options in which parts of one run may differ: two devices that are alike have different names."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run that is merged.

    Attributes:
        directory: the run's directory.
        journal: open, in a transaction, so that it stays as it is while it is read.
        about: what its journal says of it.
        header: what run it is.
        seed_ids: the seeds that it searches, or searched.

    """

    directory: RunDirectory
    journal: RunJournal
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

    def read_input(self, name: str, sha256: str | None = None) -> bytes:
        """Return the content of a file that the run stored.

        Args:
            name: path of the input, relative to the run directory.
            sha256: digest of the content, where the journal has it.

        Raises:
            UserError: it is gone, or is not what the run stored.

        """
        if name.partition("/")[0] not in INPUT_FOLDERS:
            raise damaged_journal(self.journal.path, f"it names {name!r} as an input")
        try:
            data = self.directory.read(name)
        except OSError:
            data = None
        if data is None or (sha256 is not None and hashlib.sha256(data).hexdigest() != sha256):
            raise UserError(
                f"{self.directory.path / name} is gone, or not what the run stored: make that run"
                " again"
            )
        return data


@contextmanager
def open_part(path: Path) -> Iterator[RunPart]:
    """Open a run that is merged.

    Raises:
        UserError: there is no run, or it is none of a search.

    """
    directory = RunDirectory(path)
    if is_locked(path):
        raise UserError(
            f"{path} is being worked on by another process: wait until that has ended, or stop it"
        )
    with closing(RunJournal.open(directory.journal)) as journal, journal.transaction():
        with reporting_damage(directory.journal):
            about = journal.about()
            header = RunHeader.from_json(about, str(directory.journal))
            _require_readable(about, header)
        for key, what in (("replay", "replay"), (SURVEY_KEY, "survey")):
            if about.get(key):
                raise UserError(f"{path} is a {what}: merge takes runs of `edgeflare search`")
        yield RunPart(directory, journal, about, header, header.seed_ids)


def _require_readable(about: Mapping[str, Any], header: RunHeader) -> None:
    """Refuse what no run says of itself; raises what `reporting_damage` reports."""
    for key in ("notes", WARNINGS_KEY, OTHER_HOSTS_KEY):
        lines = about.get(key) or []
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise TypeError(f"{key} are no lines")
    if not isinstance(about.get(SCREENING_KEY) or "", str):
        raise TypeError("the screening is no sha256")
    held_out = about.get(HELD_OUT_KEY) or {"sha256": "", "labels": None, "targets": None}
    if not isinstance(held_out["sha256"], str) or not all(
        isinstance(held_out[key] or [], list) for key in ("labels", "targets")
    ):
        raise TypeError("the held-out inputs are none")
    merged_health([about.get(HEALTH_KEY) or UNSEEN])
    if header.seed_ids | header.all_seeds != header.all_seeds:
        raise ValueError(f"it names other seeds than {header.all_seeds}")


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
        for what, own, two in _further(first, other):
            if own != two:
                raise UserError(
                    f"{first.name} and {other.name} are no parts of one run: {what} differs"
                    f"{f' ({own}, {two})' if isinstance(own, str) else ''}; merge runs of one"
                    " command that differ in --seed-ids only"
                )


def _further(one: RunPart, other: RunPart) -> Iterator[tuple[str, object, object]]:
    """Yield what has to be equal beside plan, pair, devices and hosts."""
    mine, theirs = one.header, other.header
    yield "the version of edgeflare", mine.version, theirs.version
    yield "how outputs are read", mine.arms, theirs.arms
    yield "the number of devices", len(mine.devices), len(theirs.devices)
    yield "the choice of seeds", mine.all_seeds, theirs.all_seeds
    yield "what --test gives", _held_out(one), _held_out(other)
    screened, by = one.about.get(SCREENING_KEY), other.about.get(SCREENING_KEY)
    if screened is not None and by is not None:
        yield "the screening", screened[:12], by[:12]


def _held_out(part: RunPart) -> str:
    given = part.about.get(HELD_OUT_KEY)
    if given is None:
        return "nothing"
    right = zlib.crc32(json.dumps([given["labels"], given["targets"]]).encode())
    return f"{given['sha256'][:12]}, labels {right:08x}"


def _refusal(one: RunPart, other: RunPart, found: RunDifference) -> str:
    if found.of == "pair":
        return (
            f"{one.name} and {other.name} are of different pairs ({found.one}, {found.other}, or"
            " other files or preprocessing): merge runs of one pair"
        )
    here, there = found.in_words()
    return (
        f"{one.name} and {other.name} are no parts of one run, with {found.name} {here} in the one"
        f" and {there} in the other: merge runs of one command that differ in --seed-ids only"
    )


UNSEEN: Final[NotedHealth] = {"devices": [], "warnings": []}
"""The health of devices of which nothing was noted."""


def merged_health(noted: Sequence[NotedHealth]) -> NotedHealth:
    """Return what was seen in all runs: the devices by their places in the plan, each line once.

    Args:
        noted: what the journal of each run keeps of the health of its devices, in the order in
            which the first and the last reading count.

    """
    devices = [health["devices"] for health in noted if health["devices"]]
    lines = [line for health in noted for line in health["warnings"]]
    return {
        "devices": [_of_one_device(readings) for readings in zip(*devices, strict=False)],
        "warnings": list(dict.fromkeys(lines)),
    }


def _of_one_device(readings: Sequence[NotedReadings]) -> NotedReadings:
    canaries: Counter[str] = Counter()
    for reading in readings:
        canaries.update(reading["canaries"])
    return {
        "temperatures_celsius": _ranges([reading["temperatures_celsius"] for reading in readings]),
        "frequencies_mhz": _ranges([reading["frequencies_mhz"] for reading in readings]),
        "canaries": dict(canaries),
        "pauses": sum(reading["pauses"] for reading in readings),
        "paused_seconds": sum(reading["paused_seconds"] for reading in readings),
        "failed": any(reading["failed"] for reading in readings),
    }


def _ranges(seen: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    ranges: dict[str, dict[str, float]] = {}
    for zones in seen:
        for name, now in zones.items():
            before = ranges.setdefault(name, dict(now))
            before |= {
                "min": min(before["min"], now["min"]),
                "max": max(before["max"], now["max"]),
                "last": now["last"],
            }
    return ranges
