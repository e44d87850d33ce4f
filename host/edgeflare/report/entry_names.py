"""How every report names what an entry of a run is: its class, its sort and its seed."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import PurePath

from edgeflare.core.answer import DEVIATION, FAILURES
from edgeflare.run.harm import rank
from edgeflare.run.nearness import counts, nearness_db
from edgeflare.run.run_document import Finding

SORTS = ("compression", "kernel", "mixed", "crash", "hang", "invalid-output")
"""What `sort` may return, in the order in which reports list it."""


def sort(entry: Finding) -> str:
    """Return the cause of a deviation, or the kind of anything worse."""
    return entry.kind if entry.kind in FAILURES else entry.cause or DEVIATION


def cause_of(entry: Finding) -> str:
    """Return what `sort` returns, and whether the deviation hangs on a tie: "kernel, tie"."""
    return f"{sort(entry)}, tie" if entry.by_tie else sort(entry)


def named_kind(entry: Finding) -> str:
    """Return the kind of a deviation in words, "object vanished"; empty where the task has none."""
    if entry.kind == DEVIATION or entry.kind in FAILURES:
        return ""
    return entry.kind.replace("-", " ")


def worst_first(entries: Iterable[Finding]) -> list[Finding]:
    """Return entries as they matter: failures, what counts, then by harm, then by strength."""
    return sorted(
        entries,
        key=lambda entry: (
            entry.kind not in FAILURES,
            not counts(entry),
            rank(entry),
            -(entry.strength or 0.0),
        ),
    )


def show_nearness(entry: Finding) -> str:
    """Return how near an entry is to its seed in dB; a seed that deviates itself is at ∞."""
    value = nearness_db(entry)
    return "–" if value is None else "∞" if value == inf else f"{round(value)}"


def with_article(measure: str) -> str:
    """Return the name of a measure with its article: "a PSNR", "an SNR"."""
    return f"{'an' if measure[:1] in 'AEFHILMNORSX' else 'a'} {measure}"


def seed_of(entry: Finding) -> str:
    """Return a seed's id, and its file's name where it has one of its own."""
    named = "" if entry.seed_name.isdecimal() else f" {entry.seed_name}"
    return f"{entry.seed_id}{named}"


def last_part(path: str) -> str:
    """Return the last name of a path: what is passed on does not tell the folders of a machine."""
    return last_parts(path).rpartition("/")[2]


def last_parts(path: str) -> str:
    """Return a path as the end of it that tells models apart: its file and the folder of that."""
    parts = PurePath(path).parts
    return path if len(parts) <= 2 else f"…/{'/'.join(parts[-2:])}"
