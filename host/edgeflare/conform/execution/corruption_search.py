"""Which of models that die together, and live apart, is to blame.

A kernel that writes outside of its tensors may do so without harm to itself, and kill whatever
runs after it in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_TRIALS = 80
"""Processes that one search may start: a pair among 400 takes about 25."""

Dies = Callable[[Sequence[int]], bool]
"""Whether models, by their places, die when they run in this order in a fresh process."""


@dataclass(frozen=True, slots=True)
class Blame:
    """The model that is to blame.

    Attributes:
        place: its place.
        others: those that die with it, as few as can be.
        corrupts: whether it makes models die that run after it, rather than dying itself among
            others.
        certain: whether it does so with other models too.

    """

    place: int
    others: tuple[int, ...]
    corrupts: bool
    certain: bool


def blamed(group: Sequence[int], innocent: Sequence[int], dies: Dies) -> Blame | None:
    """Return which of models is to blame for the death of all.

    First the smallest set that dies is found. Of its members the one is to blame that makes others
    die, too.

    Args:
        group: dies as a whole, and each of them lives alone.
        innocent: models to try suspects with, those of the group among them.
        dies: asks whether some of them die.

    Returns:
        None where the smallest set does not die again, or cannot be found by `MOST_TRIALS`.

    """
    trials = _Trials(dies)
    try:
        least = sorted(_least(tuple(group), (), trials))
        if not trials.dies(least):
            return None
        return _blame(least, [at for at in innocent if at not in least], trials)
    except _ExhaustedError:
        return None


def _blame(least: Sequence[int], innocent: Sequence[int], trials: _Trials) -> Blame:
    for one in least:
        others = tuple(at for at in least if at != one)
        # At the end nothing runs after it: if it dies there, it is by what it reads.
        if trials.dies([*innocent, one]):
            return Blame(one, others, corrupts=False, certain=True)
        if trials.dies([one, *innocent]):
            return Blame(one, others, corrupts=True, certain=True)
    return Blame(least[0], tuple(least[1:]), corrupts=True, certain=False)


def _least(group: tuple[int, ...], fixed: tuple[int, ...], trials: _Trials) -> tuple[int, ...]:
    """Return the fewest of a group that die together with those that are fixed."""
    if len(group) <= 1:
        return group
    middle = len(group) // 2
    first, second = group[:middle], group[middle:]
    for half in (first, second):
        if trials.dies(sorted((*half, *fixed))):
            return _least(half, fixed, trials)
    kept = _least(first, (*second, *fixed), trials)
    return (*kept, *_least(second, (*kept, *fixed), trials))


class _ExhaustedError(Exception):
    """As many processes were started as may be."""


class _Trials:
    """Trials that are counted; none is made twice, for the models are the same."""

    def __init__(self, dies: Dies) -> None:
        self._dies = dies
        self._known: dict[tuple[int, ...], bool] = {}

    def dies(self, models: Sequence[int]) -> bool:
        """Whether models die."""
        asked = tuple(models)
        if asked not in self._known:
            if len(self._known) >= MOST_TRIALS:
                raise _ExhaustedError
            self._known[asked] = bool(asked) and self._dies(asked)
        return self._known[asked]
