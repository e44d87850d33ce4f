"""The tables of a run's journal, and their rows."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar

import msgspec

from edgeflare.core.query import Arm
from edgeflare.record.database import DamagedDatabaseError, Database

TABLES: Final = """
-- What the arms answered. role: 'seed' (n = 0), 'step' (n = the query's number in its
-- chain, from 1), 'refine' (the same in a refinement), 'verify' (n = the repetition, from 0),
-- 'canary' (n = its number, from 1, negative where it was asked again) or 'test' (n = 0; seed_id
-- is the held-out input's position).
CREATE TABLE answers (
    role TEXT NOT NULL, seed_id INTEGER NOT NULL, n INTEGER NOT NULL,
    image_crc32 INTEGER NOT NULL,
    original BLOB, twin BLOB, device BLOB,
    members BLOB,  -- the twin's ensemble, one output behind the other
    failures TEXT,
    seconds REAL NOT NULL,
    PRIMARY KEY (role, seed_id, n)
) WITHOUT ROWID;

-- The answers of a batch to open chains, until they are moved into the table before; see
-- `answer_batches`.
CREATE TABLE batches (id INTEGER PRIMARY KEY, answers BLOB NOT NULL);

-- Chains that have ended.
CREATE TABLE chains (
    seed_id INTEGER PRIMARY KEY, ended TEXT NOT NULL,
    queries INTEGER NOT NULL, device_queries INTEGER NOT NULL,
    original_evaluations INTEGER NOT NULL, twin_evaluations INTEGER NOT NULL,
    member_evaluations INTEGER NOT NULL,
    ties INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;

-- Triggering inputs: of chains, and seeds that deviate themselves.
CREATE TABLE triggers (
    seed_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, operators TEXT NOT NULL,
    image TEXT NOT NULL, sha256 TEXT NOT NULL, seed_image TEXT NOT NULL,
    l2 REAL NOT NULL, linf REAL NOT NULL, mean_abs REAL NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;

-- Findings that were refined: what that cost, and what they were before.
CREATE TABLE refinements (
    seed_id INTEGER PRIMARY KEY,
    queries INTEGER NOT NULL, device_queries INTEGER NOT NULL,
    original_evaluations INTEGER NOT NULL, twin_evaluations INTEGER NOT NULL,
    member_evaluations INTEGER NOT NULL,
    strength REAL, image TEXT NOT NULL,
    l2 REAL NOT NULL, linf REAL NOT NULL, mean_abs REAL NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;

-- The times of each process that worked on the run.
CREATE TABLE stints (
    id INTEGER PRIMARY KEY,
    setup_seconds REAL NOT NULL DEFAULT 0, wall_seconds REAL NOT NULL DEFAULT 0,
    refine_seconds REAL NOT NULL DEFAULT 0,
    verify_seconds REAL NOT NULL DEFAULT 0, device_busy_seconds REAL NOT NULL DEFAULT 0
);
"""

NEARNESS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS nearness (image TEXT PRIMARY KEY, db REAL NOT NULL) WITHOUT ROWID
"""
"""How near to its seed a stored input is, by its path. Made with the first, so that a run of a
version without it can be resumed."""

WHITE_BOX_TABLE: Final = """
CREATE TABLE IF NOT EXISTS white_box (
    seed_id INTEGER PRIMARY KEY,
    host_gradients INTEGER NOT NULL, translated_evaluations INTEGER NOT NULL
) WITHOUT ROWID
"""
"""The white-box queries of chains that have ended. Made with the first, for the same reason."""

REFINEMENT_STEPS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS refinement_steps (
    seed_id INTEGER PRIMARY KEY,
    strengthen_queries INTEGER NOT NULL, strengthen_device_queries INTEGER NOT NULL,
    host_gradients INTEGER NOT NULL, translated_evaluations INTEGER NOT NULL,
    seconds REAL NOT NULL, strengthen_seconds REAL NOT NULL
) WITHOUT ROWID
"""
"""What strengthening had of a refinement that has ended, and its white-box queries. Made with the
first, for the same reason."""

MARKS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS marks (
    what TEXT NOT NULL, seed_id INTEGER NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (what, seed_id)
) WITHOUT ROWID
"""
"""How far answers are known to be reliable; see `reliable_answers`."""


SCREENING_KEY: Final = "screening"
"""The key of `about` under which the journal of a search of some seeds says whose answers to the
seeds it took."""

Made = TypeVar("Made")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""Whole number from 0 that every reader of JSON keeps exactly: a count, or the id of a seed."""

Amount = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]
"""Seconds, or a distance."""

REPETITIONS = 3
"""How often a finding is evaluated again before it counts: once could be chance; three times in
three different batches hardly is."""

Role = Literal["seed", "step", "refine", "verify", "canary", "test"]
Ended = Literal["finding", "max-queries", "total-queries", "max-time", "gave-up"]


def checked_row(db: Database, made: type[Made], values: Iterable[Any]) -> Made:
    """Return a row that a journal has, whose columns may be of any type whatever their table says.

    Args:
        db: the journal's.
        made: the type of such rows, with what each value may be in its annotations.
        values: values in the order of the fields; those that are left out have their defaults.

    Raises:
        DamagedDatabaseError: a value is of another type, or out of its range; names it.

    """
    # What the functions ask that return the fields, a million times.
    struct: Any = made
    names = vars(made).get("__dataclass_fields__") or struct.__struct_fields__
    try:
        named = dict(zip(names, values, strict=False))
        return msgspec.convert(named, made, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise DamagedDatabaseError(db.path, f"{made.__name__}: {error}") from None


def row_values(row: Any) -> tuple[Any, ...]:
    """Return the values of a row, a dataclass, in the order of its fields.

    `dataclasses.astuple` copies each of them, which takes longer than to write them.
    """
    return tuple([getattr(row, name) for name in row.__dataclass_fields__])


class NotedReadings(TypedDict):
    """What was seen of a device."""

    temperatures_celsius: dict[str, dict[str, float]]
    frequencies_mhz: dict[str, dict[str, float]]
    canaries: dict[str, Count]
    pauses: Count
    paused_seconds: Amount
    failed: bool


class NotedHealth(TypedDict):
    """What was seen of all devices."""

    devices: list[NotedReadings]
    warnings: list[str]


class _HeldOut(TypedDict):
    """What the held-out inputs are."""

    path: str
    sha256: str
    labels: list[int] | None
    targets: Any


class _NotedSource(TypedDict):
    """The run that is replayed."""

    run: str
    devices: list[str]
    compressed: str


class _NotedBaseline(TypedDict):
    """What deviated in a replay's baseline."""

    run: str
    sha256: list[str]


class _NotedSurvey(TypedDict, total=False):
    """What a replay of a survey was told of it."""

    deviated: list[Count]


class _NotedReplay(_NotedSurvey):
    """What a replay was told of the run that it replays, and of its baseline."""

    run: _NotedSource
    baseline: _NotedBaseline | None
    sha256: dict[str, str]
    seed_sha256: dict[str, str]


_NOTED: Final[Mapping[str, Any]] = {
    "seeds": Count,
    "notes": list[str],
    "warnings": list[str],
    "other_hosts": list[str],
    "health": NotedHealth,
    "replay": _NotedReplay,
    "test": _HeldOut | None,
    "screening": str | None,
    "stopped_by": str | None,
}
"""Types of what a journal says of its run beside the header and commands take as it is, by key."""


def checked_about(db: Database, about: dict[str, Any]) -> dict[str, Any]:
    """Return what a journal says of its run, where it is what a run says.

    Raises:
        DamagedDatabaseError: a value is of another type; names it.

    """
    for key in _NOTED.keys() & about.keys():
        try:
            msgspec.convert(about[key], _NOTED[key])
        except msgspec.ValidationError as error:
            raise DamagedDatabaseError(db.path, f"{key}: {error}") from None
    return about


class AnswerRow(msgspec.Struct, frozen=True):
    """What the arms answered about one input, as raw as they gave it.

    Attributes:
        role: what the input was.
        seed_id: the chain's seed.
        n: number of the input in that role; see the table in `journal`.
        image_crc32: CRC-32 of the input's bytes.
        original: raw output vector in the model's dtype, or None if the arm was not asked.
        twin: the same of the twin.
        device: the same of the device.
        members: raw output vectors of the members of the twin's ensemble, one behind the other.
        failures: why an arm or a member has no answer, by its name.
        seconds: this input's share of the evaluation time.

    """

    role: Role
    seed_id: Count
    n: int
    image_crc32: int
    original: bytes | None
    twin: bytes | None
    device: bytes | None
    members: bytes | None
    failures: Mapping[str, str]
    seconds: Amount

    @property
    def again(self) -> bool:
        """Whether the device alone was asked, about an input that the host had answered before."""
        return self.original is None and self.twin is None and self.members is None

    def raw(self, arm: Arm) -> bytes | None:
        """Return the raw output vector of an arm."""
        if arm is Arm.ORIGINAL:
            return self.original
        return self.twin if arm is Arm.TWIN else self.device


@dataclass(frozen=True, slots=True)
class ChainRow:
    """What a chain spent, and how it ended; member evaluations are those of each member.

    `host_gradients` and `translated_evaluations` count white-box queries, which are no queries.
    """

    seed_id: Count
    ended: Ended
    queries: Count
    device_queries: Count
    original_evaluations: Count
    twin_evaluations: Count
    member_evaluations: Count
    ties: Count
    seconds: Amount
    host_gradients: Count = 0
    translated_evaluations: Count = 0

    @classmethod
    def nothing_spent(cls, seed_id: int) -> ChainRow:
        """Return a chain that led to a finding and spent nothing: of what was found elsewhere."""
        return cls(
            seed_id=seed_id,
            ended="finding",
            queries=0,
            device_queries=0,
            original_evaluations=0,
            twin_evaluations=0,
            member_evaluations=0,
            ties=0,
            seconds=0.0,
        )


def white_box_spent(
    ended: Sequence[ChainRow] | Sequence[RefinementRow], prefix: str = ""
) -> Mapping[str, Any]:
    """Return what white-box queries cost, as the document has it; nothing where there was none.

    Args:
        ended: the searches or refinements that asked.
        prefix: what stands before the document's keys.

    """
    spent = {
        f"{prefix}host_gradients": sum(row.host_gradients for row in ended),
        f"{prefix}translated_evaluations": sum(row.translated_evaluations for row in ended),
    }
    return spent if any(spent.values()) else {}


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A stored triggering input.

    Attributes:
        seed_id: the seed that it came from.
        kind: the kind of finding.
        operators: names of the mutation operators applied, in order.
        image: path of the input, relative to the run directory.
        sha256: digest of that file.
        seed_image: path of the seed's image, relative to the run directory.
        l2: Euclidean distance to the seed, in levels.
        linf: largest change of a value, in levels.
        mean_abs: mean absolute change of a value, in levels.
        changed: number of cells that differ from the seed's.
        nearness_db: nearness to the seed, as the domain measures it; None for the seed itself.

    """

    seed_id: Count
    kind: str
    operators: tuple[str, ...]
    image: str
    sha256: str
    seed_image: str
    l2: Amount
    linf: Amount
    mean_abs: Amount
    changed: Count
    nearness_db: float | None = None


@dataclass(frozen=True, slots=True)
class RefinementRow:
    """What refining a finding cost, and what the finding was before.

    Attributes:
        seed_id: the seed that it came from.
        queries: inputs evaluated.
        device_queries: those of them that the device answered.
        original_evaluations: invocations of the original.
        twin_evaluations: invocations of the twin.
        member_evaluations: invocations of each member of the twin's ensemble.
        strength: strength before; None where the finding did not show again.
        image: path of the input as the search found it, relative to the run directory.
        l2: distance of that input, as for the finding; likewise linf, mean_abs and changed.
        strengthen_queries: those of the queries that strengthened it; the first of all, by which
            the finding has to show again, is of no step.
        strengthen_device_queries: those of the device queries that strengthened it.
        host_gradients: white-box queries, which are no queries; likewise translated_evaluations.
        seconds: share of evaluation time of strengthening and shrinking.
        strengthen_seconds: share of evaluation time of strengthening.

    """

    seed_id: Count
    queries: Count
    device_queries: Count
    original_evaluations: Count
    twin_evaluations: Count
    member_evaluations: Count
    strength: float | None
    image: str
    l2: Amount
    linf: Amount
    mean_abs: Amount
    changed: Count
    strengthen_queries: Count = 0
    strengthen_device_queries: Count = 0
    host_gradients: Count = 0
    translated_evaluations: Count = 0
    seconds: Amount = 0.0
    strengthen_seconds: Amount = 0.0


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, as DESIGN and the run schema define them."""

    setup: Amount = 0.0
    wall: Amount = 0.0
    refine: Amount = 0.0
    verify: Amount = 0.0
    device_busy: Amount = 0.0


def screening_sha256(rows: Mapping[int, AnswerRow]) -> str:
    """Return the sha256 of the answers to the seeds, whatever the order and however long each took.

    Args:
        rows: what was answered to each seed, by id.

    """
    digest = hashlib.sha256()
    for seed_id in sorted(rows):
        row = rows[seed_id]
        blobs = (row.original, row.twin, row.device, row.members)
        sizes = [None if blob is None else len(blob) for blob in blobs]
        about = [seed_id, row.image_crc32, sizes, sorted(row.failures.items())]
        digest.update(json.dumps(about).encode())
        for blob in blobs:
            digest.update(blob or b"")
    return digest.hexdigest()
