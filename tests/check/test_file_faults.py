"""What the files of a pair say without being run."""

from __future__ import annotations

from pathlib import Path

import pytest

from called_commands import EXAMPLES
from edgeflare.check.file_faults import file_figures
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings

EXAMPLE = EXAMPLES / "fashion_lenet4"
ORIGINAL, COMPRESSED = EXAMPLE / "original.tflite", EXAMPLE / "compressed.tflite"


@pytest.mark.parametrize(
    ("original", "compressed", "said"),
    [
        (ORIGINAL, COMPRESSED, ""),
        (ORIGINAL, ORIGINAL, "both files are equal"),
        (COMPRESSED, ORIGINAL, "are they swapped?"),
    ],
)
def test_the_same_file_twice_and_swapped_ones_are_said(
    original: Path, compressed: Path, said: str
) -> None:
    given = Settings(original=str(original), compressed=str(compressed))
    found = file_figures(load_pair(EXAMPLE, given))
    assert found.faults == ()
    assert (found.original_bytes, found.compressed_bytes) == (
        original.stat().st_size,
        compressed.stat().st_size,
    )
    assert said in " ".join(found.remarks)
    assert bool(found.remarks) is bool(said)
