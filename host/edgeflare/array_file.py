"""Arrays in numpy's formats, `.npy` and `.npz`, which may be a stranger's; nothing else reads them.

What a file claims is held against what it has before anything is allocated. Only plain numbers and
texts are read: Python objects, which run code, and records are refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.regular_file import open_regular

Array = NDArray[np.generic]

_KINDS = "biufcSU"
"""Kinds of numpy's types that are read: bools, numbers, bytes and texts."""

_MOST_UNPACKED = 2**28
"""Bytes that the arrays of any archive may have; a larger archive may have more."""

_MOST_INFLATION = 64
"""How many times larger than an archive its arrays may be; texts and masks come to less."""

_MOST_ROWS_OF_NOTHING = 10**6
"""Most rows of an array without values: its file need not be as large as the number says."""

_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_CHUNK = 2**20


class NotArrays(Exception):  # noqa: N818 - what the content is, for the caller to report
    """What was to be read is no file of arrays, is damaged, or claims too much; says why."""


@dataclass(frozen=True, slots=True)
class ArrayArchive:
    """An `.npz` file, of which some arrays were read.

    Attributes:
        names: names of all its arrays.
        arrays: what was read, by name.

    """

    names: tuple[str, ...]
    arrays: Mapping[str, Array]


def read_npy(source: Path | bytes) -> Array:
    """Return the array of an `.npy` file.

    Args:
        source: path or content of the file.

    Raises:
        NotArrays: it is none, or claims more values than it has.
        UserError: it is no regular file.

    """
    try:
        with _opened(source) as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            return _array(file, size)
    except (NotArrays, UserError):
        raise
    except Exception as error:  # whatever numpy raises on a damaged file
        raise NotArrays(_reason(error)) from error


def read_npz(
    source: Path | bytes, wanted: Collection[str] | None = None, most_bytes: int | None = None
) -> ArrayArchive:
    """Return arrays of an `.npz` file.

    Args:
        source: path or content of the file.
        wanted: the names of those that are read where the file has them; None for all.
        most_bytes: bytes that they may have together; None for what files have that are no bombs.

    Raises:
        NotArrays: it is none, an array in it is damaged, or those that are read claim more than
            such a file has room for.
        UserError: it is no regular file.

    """
    try:
        with _opened(source) as file, zipfile.ZipFile(file) as archive:
            room = most_bytes or max(_MOST_UNPACKED, _MOST_INFLATION * file.seek(0, io.SEEK_END))
            members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            read = [name for name in members if wanted is None or name in wanted]
            claimed = sum(members[name].file_size for name in read)
            if claimed > room:
                raise NotArrays(
                    f"its arrays claim {claimed:,} bytes, and of such a file at most {room:,} are"
                    " unpacked; without compression it may have more"
                )
            arrays = {}
            for name in read:
                if members[name].compress_type not in _PACKED:
                    raise NotArrays(f"its array {name!r} is packed as numpy packs none")
                with archive.open(members[name]) as member:
                    arrays[name] = _array(member, members[name].file_size)
            return ArrayArchive(tuple(members), arrays)
    except (NotArrays, UserError):
        raise
    except Exception as error:  # whatever numpy, zipfile and its decoders raise on a damaged file
        raise NotArrays(_reason(error)) from error


def names_without_objects(source: Path) -> list[str]:
    """Return the names of the arrays of an `.npz` file that hold no Python objects.

    Raises:
        NotArrays: it is no such file, or damaged.
        UserError: it is no regular file.

    """
    names = []
    try:
        with _opened(source) as file, zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as member:
                    _, _, dtype = _header(member)
                if not dtype.hasobject:
                    names.append(entry.filename.removesuffix(".npy"))
    except (NotArrays, UserError):
        raise
    except Exception as error:  # whatever numpy, zipfile and its decoders raise on a damaged file
        raise NotArrays(_reason(error)) from error
    return names


def read_arrays(content: bytes, most_bytes: int) -> list[Array]:
    """Return the arrays of a file of either format, of at most so many bytes.

    Raises:
        NotArrays: it is of none of them, or damaged.

    """
    if zipfile.is_zipfile(io.BytesIO(content)):
        return [*read_npz(content, None, most_bytes).arrays.values()]
    return [read_npy(content)]


def decode_npz(name: str, data: bytes) -> NDArray[Any] | None:
    """Return the array of that name in an archive; None where it has none, or is damaged."""
    try:
        return read_npz(data, (name,)).arrays.get(name)
    except NotArrays:
        return None


def encode_npz(arrays: Mapping[str, Array]) -> bytes:
    """Return the compressed archive of arrays; numpy has arguments `file` and `allow_pickle`."""
    buffer = io.BytesIO()
    given: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **given)
    return buffer.getvalue()


def _opened(source: Path | bytes) -> IO[bytes]:
    return io.BytesIO(source) if isinstance(source, bytes) else open_regular(source)


def _array(file: IO[bytes], size: int) -> Array:
    """Read an array from an open file that says it has so many bytes."""
    shape, column_major, dtype = _header(file)
    _require_plain(shape, dtype, size - file.tell())
    values: Array = np.empty(prod(shape), dtype)
    room = values.view(np.uint8).data if values.nbytes else memoryview(b"")
    at = 0
    while at < values.nbytes:
        part = file.read(min(_CHUNK, values.nbytes - at))
        if not part:
            raise NotArrays("it ends before its last value")
        room[at : at + len(part)] = part
        at += len(part)
    file.read(1)  # an archive's checksum is looked at where a member ends
    read: Array = _native(values).reshape(shape, order="F" if column_major else "C")
    return read


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape of an array, whether it lies column by column, and its type."""
    version = _FORMAT.read_magic(file)
    if version not in _HEADERS:
        raise NotArrays(f"it is of version {version} of the format, which only records need")
    header: tuple[tuple[int, ...], bool, np.dtype[Any]] = _HEADERS[version](file)
    return header


_FORMAT: Any = np.lib.format
_HEADERS: Mapping[tuple[int, int], Any] = {
    (1, 0): _FORMAT.read_array_header_1_0,
    (2, 0): _FORMAT.read_array_header_2_0,
}


def _require_plain(shape: tuple[int, ...], dtype: np.dtype[Any], rest: int) -> None:
    """Refuse what is no array of numbers or texts, or claims more values than are left."""
    if dtype.hasobject:
        raise NotArrays("it holds Python objects")
    if dtype.kind not in _KINDS or dtype.shape or not dtype.itemsize:
        raise NotArrays(f"it holds {str(dtype)[:40]}, and neither numbers nor texts")
    if min(shape, default=0) < 0 or len(shape) > _MOST_AXES:
        raise NotArrays("it claims a shape that no array has")
    if prod(shape) * dtype.itemsize > rest:
        raise NotArrays(f"it claims more values than there are in its {rest:,} bytes")
    if not prod(shape) and prod(max(1, size) for size in shape) > _MOST_ROWS_OF_NOTHING:
        raise NotArrays("it claims that many rows without a value")


_MOST_AXES = 32
"""What numpy 1 takes; numpy 2 takes twice as many."""


def _native(values: Array) -> Array:
    """Return values in this machine's order of bytes, bools as 0 or 1."""
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind == "b":
        values = values.view(np.uint8) != 0
    if values.dtype.kind == "U" and values.size:
        codes = values.view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise NotArrays("a text in it has what is no character")
    return values


def _reason(error: Exception) -> str:
    """Return what an error says in one line; numpy and its decoders write several."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
