"""Deviations that the translations of original and twin foretell, and the arms confirm."""

from __future__ import annotations

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Query, TranslatedOutcome, TranslatedQuery
from edgeflare.search.strategy import SearchGenerator, Start, WhiteboxGenerator
from edgeflare.search.surrogates.surrogate import with_device


def translated(one: Input, coverage: float | None = None) -> WhiteboxGenerator[TranslatedOutcome]:
    """Return what the translations answer about one input; see `TranslatedQuery`."""
    (told,) = yield TranslatedQuery([one], coverage)
    answer: TranslatedOutcome = told
    return answer


def confirmed(start: Start, one: Input, told: TranslatedOutcome, operator: str) -> SearchGenerator:
    """Ask the arms about an input on which the translations deviate as the goal wants.

    Args:
        start: what the search began with.
        one: the input.
        told: what the translations answer about it; the twin's stands for the device.
        operator: what the trigger says that it was made by.

    Returns:
        The trigger; None where nothing is foretold, and then nobody is asked, or where the arms
        contradict it.

    """
    if start.goal.met(with_device(told.outcome, told.outcome[Arm.TWIN])) is None:
        return None
    (outcome,) = yield [Query(one, start.goal.needed)]
    kind = start.goal.met(outcome)
    return None if kind is None else Trigger(one, kind, outcome, (operator,))
