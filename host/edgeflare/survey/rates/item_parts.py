"""Which items the rates of a survey are of: all that count, and those of each condition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgeflare.survey.items.survey_facts import Flags, SurveyFacts


def surveyed(facts: SurveyFacts) -> Flags:
    """Return the items that rates over all are of, (items,) bool.

    The unchanged inputs are among them only where nothing else is surveyed.
    """
    return np.asarray(facts.cell > 0) if len(facts.cells) > 1 else np.ones(facts.items, bool)


def items_by_condition(facts: SurveyFacts) -> Iterator[tuple[str, Flags]]:
    """Yield each condition with its items, (items,) bool."""
    for name in dict.fromkeys(one.condition for one in facts.cells[1:]):
        cells = [at for at, one in enumerate(facts.cells) if at and one.condition == name]
        yield name, np.isin(facts.cell, cells)
