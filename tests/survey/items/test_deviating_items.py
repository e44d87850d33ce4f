"""Which deviating items a survey stores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.survey_rows import DeviceRow
from edgeflare.survey.items.deviating_items import choose_findings

INPUTS = 4
CELLS = 3


def row(item: int, strength: float | None, kind: str | None = "deviation") -> DeviceRow:
    deviates = kind is not None
    return DeviceRow(
        item,
        deviates,
        False,
        False,
        False,
        False,
        False,
        kind,
        strength,
        1,
        None,
        0.0,
        False,
        None,
    )


rows = st.lists(
    st.builds(
        row,
        item=st.integers(0, INPUTS * CELLS - 1),
        strength=st.none() | st.floats(0.0, 1.0),
        kind=st.sampled_from(["deviation", "crash", None]),
    ),
    unique_by=lambda one: one.item,
)


@given(rows, st.lists(st.floats(0, 1), min_size=CELLS, max_size=CELLS), st.integers(0, 6))
def test_each_input_is_chosen_once_at_most(
    found: list[DeviceRow], rates: list[float], most: int
) -> None:
    chosen = choose_findings(found, INPUTS, np.array(rates), most)
    deviating = {one.item % INPUTS for one in found if one.kind is not None}
    assert all(one.kind is not None for one in chosen)
    assert len({one.item % INPUTS for one in chosen}) == len(chosen) == min(most, len(deviating))


@given(rows, st.lists(st.floats(0, 1), min_size=CELLS, max_size=CELLS), st.randoms())
def test_the_order_of_the_answers_decides_nothing(
    found: list[DeviceRow], rates: list[float], random: object
) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    both = (choose_findings(one, INPUTS, np.array(rates), 3) for one in (found, shuffled))
    first, second = both
    assert first == second


def test_the_worst_cells_come_first_and_then_the_strongest() -> None:
    found = [row(0, 0.9), row(1, 0.8), row(4, 0.1), row(6, 0.3), row(8, 0.2), row(7, 0.7)]
    chosen = choose_findings(found, INPUTS, np.array([0.1, 0.2, 0.9]), 10)
    # Of cell 2 item 8 (input 0), of cell 1 item 7 (input 3), of cell 0 item 1; then item 6.
    assert [one.item for one in chosen] == [8, 7, 1, 6]


def test_a_failure_is_stronger_than_any_deviation() -> None:
    chosen = choose_findings([row(0, 1.0), row(1, None, "hang")], INPUTS, np.zeros(3), 1)
    assert [one.item for one in chosen] == [1]
