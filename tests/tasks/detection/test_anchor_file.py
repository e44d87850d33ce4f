from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import UserError
from edgeflare.tasks.detection.anchor_file import grid_anchors, read_anchors


def claimed() -> bytes:
    """A file whose header promises more numbers than there are."""
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 2)}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
    return file.getvalue()


def packed(*contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, content in enumerate(contents):
            archive.writestr(f"anchors{at}.npy", content)
    return file.getvalue()


def inflating() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((2**20, 2)))
    return packed(file.getvalue())


def damaged() -> bytes:
    content = bytearray(inflating())
    content[60:90] = bytes(30)
    return bytes(content)


@pytest.mark.parametrize(
    "content", [claimed, lambda: packed(b"text"), inflating, damaged, lambda: b"", lambda: b"PK"]
)
def test_files_that_hold_no_anchors_are_refused(
    content: Callable[[], bytes], tmp_path: Path
) -> None:
    file = tmp_path / "anchors.npz"
    file.write_bytes(content())
    with pytest.raises(UserError, match=r"not an \.npz or \.npy file of numbers"):
        read_anchors(file)


@pytest.mark.parametrize("columns", [2, 4])
def test_anchors_are_read_from_both_formats(columns: int, tmp_path: Path) -> None:
    anchors = np.arange(3 * columns, dtype=np.float32).reshape(3, columns) / 16
    np.savez(tmp_path / "a.npz", anchors=anchors)
    np.save(tmp_path / "a.npy", anchors)
    assert read_anchors(tmp_path / "a.npz") == read_anchors(tmp_path / "a.npy") == anchors.tolist()


def test_grids_are_bounded() -> None:
    centres = [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    assert grid_anchors([(2, 1)]).tolist() == centres
    with pytest.raises(UserError, match="more than a million anchors"):
        grid_anchors([(1_000_000, 1)])
