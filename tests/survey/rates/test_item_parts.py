"""Tests of edgeflare.survey.rates.item_parts."""

from __future__ import annotations

import numpy as np

from constructed_surveys import constructed_facts
from edgeflare.survey.rates.item_parts import items_by_condition, surveyed


def test_conditions_divide_what_is_surveyed() -> None:
    facts = constructed_facts(inputs=10)
    parts = dict(items_by_condition(facts))
    assert list(parts) == ["fog", "dark"]
    assert np.array_equal(sum(parts.values()), surveyed(facts))
    for name, chosen in parts.items():
        assert {facts.cells[at].condition for at in facts.cell[chosen].tolist()} == {name}
    assert not surveyed(facts)[:10].any()


def test_unchanged_inputs_count_where_nothing_else_is_surveyed() -> None:
    facts = constructed_facts(inputs=10, conditions=())
    assert surveyed(facts).tolist() == 10 * [True]
    assert not list(items_by_condition(facts))
