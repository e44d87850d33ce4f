"""Units partition the seeds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.fleet.plan.work_units import UNITS_FOR_EACH_PLACE, search_units
from edgeflare.run.seed_ids import SeedIds


@given(
    st.sets(st.integers(0, 10_000), min_size=1, max_size=300),
    st.integers(1, 50),
    st.none() | st.integers(1, 400),
)
def test_units_partition_the_ids(ids: set[int], places: int, size: int | None) -> None:
    units = search_units(SeedIds.of(ids), places, size)

    taken = [one for unit in units for one in unit.seed_ids or ()]
    assert taken == sorted(ids)
    assert len({unit.name for unit in units}) == len(units)
    assert all(unit.seeds == len(unit.seed_ids or ()) > 0 for unit in units)
    if size is None:
        assert len(units) <= places * UNITS_FOR_EACH_PLACE
    else:
        assert all(unit.seeds == size for unit in units[:-1])
        assert units[-1].seeds <= size
