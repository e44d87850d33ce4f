"""A campaign in parts, which all tests of merging read and none changes."""

from __future__ import annotations

import pytest

from made_once import made_once
from merged_parts import MergedParts, make_parts


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> MergedParts:
    """A run of each seed of a small laboratory, their screening, and the whole."""
    return MergedParts(made_once(tmp_path_factory, "merged_parts", make_parts))
