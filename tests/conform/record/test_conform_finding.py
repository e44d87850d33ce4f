from __future__ import annotations

from math import inf, nan

import pytest

from edgeflare.conform.record.conform_finding import kept_error


@pytest.mark.parametrize(
    ("error", "kept"),
    [(1.5, 1.5), (0.0, 0.0), (2.0**53 - 1, 2.0**53 - 1), (7e46, None), (inf, None), (nan, None)],
)
def test_the_largest_error_is_one_that_readers_of_json_keep(
    error: float, kept: float | None
) -> None:
    assert kept_error(error) == kept
