"""What was asked, kept as JSON and read back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.record.conform_request import ConformRequest


@given(
    st.builds(
        ConformRequest,
        cells=st.lists(st.tuples(st.text(), st.text())).map(tuple),
        drawing=st.sampled_from(["uniform", "memo"]),
        pairs=st.booleans(),
        models=st.none() | st.integers(1, 10**9),
        seconds=st.none() | st.floats(0, 1e9),
        rng_seed=st.integers(0, 2**63),
        model=st.none() | st.text(),
    )
)
def test_a_request_is_read_back(request: ConformRequest) -> None:
    assert ConformRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
