"""The parts of seeds that units have partition them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.fleet.plan.work_units import (
    SCREENED_SEEDS,
    UNITS_FOR_EACH_PLACE,
    screening_parts,
    search_parts,
)
from edgeflare.run.seed_ids import SeedIds


@given(
    st.sets(st.integers(0, 10_000), min_size=1, max_size=300),
    st.integers(1, 50),
    st.none() | st.integers(1, 400),
)
def test_units_partition_the_ids(ids: set[int], places: int, size: int | None) -> None:
    parts = search_parts(SeedIds.of(ids), places, size)

    assert [one for part in parts for one in part] == sorted(ids)
    assert all(len(part) > 0 for part in parts)
    if size is None:
        assert len(parts) <= places * UNITS_FOR_EACH_PLACE
    else:
        assert all(len(part) == size for part in parts[:-1])
        assert len(parts[-1]) <= size


@given(st.integers(1, 3000), st.integers(1, 50))
def test_the_screening_is_shared_out_where_that_is_worth_it(seeds: int, places: int) -> None:
    parts = screening_parts(SeedIds.first(seeds), places)

    assert [one for part in parts for one in part] == list(range(seeds))
    assert len(parts) <= places
    assert all(len(part) >= SCREENED_SEEDS for part in parts[:-1])
