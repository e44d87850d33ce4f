"""What only the page of a replay shows: what deviates now, what is mended, and what is new."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.report.entry_names import last_parts
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_document import RunDocument


@dataclass(frozen=True, slots=True)
class ReplayView:
    """A replay, as its page shows it.

    Attributes:
        of: the run that it replays, and the devices of that.
        model: the compressed model now, and what it was where it is another.
        tried: how many stored inputs were tried again.
        deviating: how many of them deviate each time.
        mended: how many do not deviate at all, nor does their seed.
        worse: seeds of inputs that deviate themselves, and did not when the run was made.
        but: those of them whose stored input is mended.
        changed: the kind that an input is of now, where it was of another, by its seed.
        baseline: the run that it is held against, or None.
        new: seeds of what deviates and did not there.
        seeds_are_new: whether `new` is partly of seeds.

    """

    of: str
    model: str
    tried: int
    deviating: int
    mended: int
    worse: frozenset[int]
    but: frozenset[int]
    changed: dict[int, str]
    baseline: str | None
    new: frozenset[int]
    seeds_are_new: bool


def replay_of(document: RunDocument) -> ReplayView | None:
    """Return what is shown of a replay; None of a search."""
    outcome = document.replay
    if outcome is None:
        return None
    worse = frozenset(outcome.deviating_seeds)
    mended = frozenset(entry.seed_id for entry in outcome.mended)
    return ReplayView(
        of=f"{_name(outcome.of.run)} (on {', '.join(outcome.of.devices)})",
        model=_model(document.pair.get("compressed", ""), outcome.of.compressed),
        tried=tried(document),
        deviating=deviating_now(document),
        mended=len(mended - worse),
        worse=worse,
        but=mended & worse,
        changed={one.seed_id: f"{one.before} → {one.now}" for one in outcome.changed_kind},
        baseline=None if outcome.baseline is None else _name(outcome.baseline),
        new=frozenset(outcome.new),
        seeds_are_new=not worse.isdisjoint(outcome.new),
    )


def _model(now: str, then: str) -> str:
    """Name the compressed model, and what it was where it is another."""
    if now == then:
        return _name(now)
    shown = last_parts if _name(now) == _name(then) else _name
    return f"{shown(now)} (then {shown(then)})"


def _name(path: str) -> str:
    """Return the last part of a path: a report is passed on."""
    return last_parts(path).rpartition("/")[2]
