"""Marks in a journal: how far the answers of a device are known to be reliable.

A good canary vouches for what its device answered before it. The mark of an open chain is the
number of its answers then; a chain and a refinement that had ended then have a mark of 0. What
has no mark is not vouched for. The table is made with the first mark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from edgeflare.errors import UserError
from edgeflare.record.database import Database
from edgeflare.run.journal_rows import MARKS_TABLE, REFINEMENT_STEPS_TABLE, WHITE_BOX_TABLE

_ROLES = ("step", "refine")
"""Roles of the answers of open chains."""

_ENDED = ("chains", "refinements")
"""Tables of what has ended."""

Mine = Callable[[int], bool]
"""Whether a seed, given its id, belongs to the device in question."""


class DroppedAnswers(NamedTuple):
    """What was dropped of a device.

    Attributes:
        chains: searches that had ended.
        refinements: refinements that had ended, of findings that stay.
        answers: answers of searches and refinements that are open.
        inputs: paths of the inputs that are no longer used, relative to the run directory.

    """

    chains: int
    refinements: int
    answers: int
    inputs: tuple[str, ...]


def mark_reliable(db: Database, mine: Mine, changed: Iterable[int]) -> None:
    """Mark all that a device has answered as reliable.

    Args:
        db: the journal's database, inside a transaction.
        mine: the seeds of the device.
        changed: seeds of the device that may have answers since its last mark.

    """
    db.execute(MARKS_TABLE)
    now = [(role, seed_id, _answered(db, role, seed_id)) for seed_id in changed for role in _ROLES]
    db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [row for row in now if row[2]])
    for table in _ENDED:
        rows = [(table, seed_id, 0) for seed_id in _unmarked(db, table) if mine(seed_id)]
        db.executemany("INSERT INTO marks VALUES (?, ?, ?)", rows)


def drop_unreliable(db: Database, mine: Mine, read: Callable[[str], bytes]) -> DroppedAnswers:
    """Drop what a device answered in searches and refinements since its last mark.

    All of its verifications go too, since they are cheap to repeat. A finding whose refinement is
    dropped is again what the search found; where that input is gone, its search is dropped too.

    Args:
        db: the journal's database, inside a transaction.
        mine: the seeds of the device.
        read: returns the content of a stored input, given its path in the run directory.

    """
    for made_with_the_first in (MARKS_TABLE, WHITE_BOX_TABLE, REFINEMENT_STEPS_TABLE):
        db.execute(made_with_the_first)
    chains = {seed_id for seed_id in _unmarked(db, "chains") if mine(seed_id)}
    inputs: list[str] = []
    undone = 0
    for seed_id in {seed_id for seed_id in _unmarked(db, "refinements") if mine(seed_id)} - chains:
        try:
            inputs += _undo_refinement(db, seed_id, read)
            undone += 1
        except (OSError, UserError):
            chains.add(seed_id)
    answers = 0
    for seed_id in chains:
        inputs += _drop_chain(db, seed_id)
    for role, seed_id in db.execute(
        "SELECT DISTINCT role, seed_id FROM answers WHERE role IN ('step', 'refine', 'verify')"
    ).fetchall():
        if mine(seed_id):
            dropped = db.execute(
                "DELETE FROM answers WHERE role = ?1 AND seed_id = ?2 AND (?1 = 'verify' OR n >"
                " coalesce((SELECT n FROM marks WHERE what = ?1 AND seed_id = ?2), 0))",
                (role, seed_id),
            ).rowcount
            answers += dropped if role in _ROLES else 0
    return DroppedAnswers(len(chains), undone, answers, tuple(inputs))


def _answered(db: Database, role: str, seed_id: int) -> int:
    """Return how many answers an open chain of a role has."""
    query = "SELECT coalesce(max(n), 0) FROM answers WHERE role = ? AND seed_id = ?"
    return int(db.execute(query, (role, seed_id)).fetchone()[0])


def _unmarked(db: Database, table: str) -> Iterator[int]:
    query = f"SELECT seed_id FROM {table} EXCEPT SELECT seed_id FROM marks WHERE what = ?"  # noqa: S608 - a constant
    return (seed_id for (seed_id,) in db.execute(query, (table,)).fetchall())


def _undo_refinement(db: Database, seed_id: int, read: Callable[[str], bytes]) -> Iterable[str]:
    """Restore a finding as it was before refinement; return the refined input that goes."""
    refined, found, *distance = db.execute(
        "SELECT triggers.image, refinements.image, refinements.l2, refinements.linf,"
        " refinements.mean_abs, refinements.changed"
        " FROM refinements JOIN triggers USING (seed_id) WHERE seed_id = ?",
        (seed_id,),
    ).fetchone()
    sha256 = hashlib.sha256(read(found)).hexdigest()
    db.execute(
        "UPDATE triggers SET image = ?, sha256 = ?, l2 = ?, linf = ?, mean_abs = ?, changed = ?"
        " WHERE seed_id = ?",
        (found, sha256, *distance, seed_id),
    )
    db.execute("DELETE FROM refinements WHERE seed_id = ?", (seed_id,))
    db.execute("DELETE FROM marks WHERE what = 'refine' AND seed_id = ?", (seed_id,))
    return {refined} - {found}


def _drop_chain(db: Database, seed_id: int) -> Iterable[str]:
    """Drop an ended chain and its findings from a journal; return the inputs that go with them."""
    stored = db.execute(
        "SELECT image FROM triggers WHERE seed_id = ?1 UNION SELECT seed_image FROM triggers"
        " WHERE seed_id = ?1 UNION SELECT image FROM refinements WHERE seed_id = ?1",
        (seed_id,),
    ).fetchall()
    for table in ("chains", "triggers", "refinements", "marks", "white_box", "refinement_steps"):
        db.execute(f"DELETE FROM {table} WHERE seed_id = ?", (seed_id,))  # noqa: S608 - a constant
    return [name for (name,) in stored]
