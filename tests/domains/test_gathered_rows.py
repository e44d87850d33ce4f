"""Arrays of many inputs: the same in memory and in a file, and a disk that is too small."""

from __future__ import annotations

import os
from errno import ENOSPC

import numpy as np
import pytest

from edgeflare.domains import gathered_rows
from edgeflare.domains.gathered_rows import gathered
from edgeflare.errors import InfrastructureError

ROWS = np.random.default_rng(0).integers(0, 256, (50, 4, 5, 3), np.uint8)


def test_rows_in_a_file_are_those_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def array() -> np.ndarray:
        return gathered(len(ROWS), ROWS.shape[1:], "uint8", iter(ROWS))

    inside = array()
    monkeypatch.setattr(gathered_rows, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(gathered_rows, "_RELEASED_BYTES", 200)
    outside = array()
    assert not outside.flags.owndata
    np.testing.assert_array_equal(outside, inside)
    np.testing.assert_array_equal(outside[[3, 1]], ROWS[[3, 1]])


def test_a_disk_without_room_is_trouble_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(gathered_rows, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InfrastructureError, match=r"No space left on device.*TMPDIR"):
        gathered(len(ROWS), ROWS.shape[1:], "uint8", iter(ROWS))
