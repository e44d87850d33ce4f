from __future__ import annotations

import io
import zipfile
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

import mutated_binaries
from edgeflare.array_file import Array, NotArrays, encode_npz, read_npy, read_npz
from mutated_binaries import Mutation, npy_header, npz_members
from mutated_files import any_bytes

KINDS = of_numpy.array_shapes(min_dims=0, min_side=0, max_side=4).flatmap(
    lambda shape: of_numpy.arrays(
        st.one_of(
            of_numpy.boolean_dtypes(),
            of_numpy.integer_dtypes(),
            of_numpy.floating_dtypes(sizes=(16, 32, 64)),
            of_numpy.unicode_string_dtypes(max_len=5),
        ),
        shape,
    )
)


def npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def claiming(header: str, values: bytes = b"") -> bytes:
    """A file with a header of one's own."""
    body = header.encode()
    return b"\x93NUMPY\1\0" + len(body).to_bytes(2, "little") + body + values


def packed(content: bytes, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("a.npy", content)
    return file.getvalue()


@given(KINDS, st.booleans())
def test_arrays_are_what_numpy_wrote(array: Array, by_columns: bool) -> None:
    if by_columns:
        array = np.asfortranarray(array)
    for read in (read_npy(npy(array)), read_npz(encode_npz({"a": array})).arrays["a"]):
        assert read.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(read, array)
        assert read.flags.writeable


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            claiming("{'descr': '<f8', 'fortran_order': False, 'shape': (1048576, 1048576)}"),
            "more values than",
        ),
        (claiming("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}"), "that no array has"),
        (claiming("{'descr': '|u1', 'fortran_order': False, 'shape': (10000000, 0)}"), "many rows"),
        (claiming("{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999,)}"), "neither"),
        (
            claiming("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"\x80\4N."),
            "Python objects",
        ),
        (
            claiming("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", b"\xff" * 4),
            "charact",
        ),
        (claiming("[" * 9000), "."),
        (b"text", "."),
    ],
)
def test_what_claims_more_than_it_has_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(NotArrays, match=said):
        read_npy(content)
    with pytest.raises(NotArrays, match=said):
        read_npz(packed(content))


def test_bombs_are_refused_and_what_is_large_without_compression_is_not() -> None:
    zeros = np.zeros(2**20, np.uint8)
    with pytest.raises(NotArrays, match="at most 1,000,000 are unpacked"):
        read_npz(encode_npz({"a": zeros}), most_bytes=1_000_000)
    with pytest.raises(NotArrays, match="packed as numpy packs none"):
        read_npz(packed(npy(zeros), zipfile.ZIP_LZMA))
    assert read_npz(packed(npy(zeros)), ()).names == ("a",)


def test_an_array_is_checked_against_its_checksum() -> None:
    content = bytearray(packed(npy(np.arange(100)), zipfile.ZIP_STORED))
    content[300] ^= 1
    with pytest.raises(NotArrays, match="CRC"):
        read_npz(bytes(content))


@pytest.mark.parametrize("number", range(30))
@pytest.mark.parametrize("change", [npy_header, npz_members, any_bytes])
def test_changed_files_are_read_or_refused_in_one_line(
    number: int, change: Mutation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutated_binaries, "BOMB_BYTES", 2**20)  # which takes less time
    several = change is npz_members or (change is any_bytes and number % 2)
    data = encode_npz({"a": np.arange(3), "b": np.eye(2)}) if several else npy(np.ones((3, 4)))
    (tmp_path / "file").write_bytes(change(data, Random(number)))  # noqa: S311 - no secret
    read = read_npz if several else read_npy
    said = ""
    try:
        read(tmp_path / "file")
    except NotArrays as refused:
        said = str(refused)
    assert "\n" not in said
    assert len(said) < 300
