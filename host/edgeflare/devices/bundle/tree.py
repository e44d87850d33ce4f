"""A tree of files, path to content: laid out in a folder, packed so that equal trees are equal."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian, as all targets are
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5

_Segment = tuple[int, int, int, int]
"""Type, offset in the file, address in memory, size in the file."""


# 1980, the first year that all archives and file systems can tell.
_TIME = 315532800

# 9 takes three times as long and saves half a percent.
_LEVEL = 6


def write_tree(tree: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a folder, with those folders that they need."""
    for path, content in tree.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(_mode(content))


def pack_tree(tree: Mapping[str, bytes], path: Path) -> None:
    """Write files to a .tar.gz, whose bytes depend on their paths and contents only.

    The file appears when it is complete.
    """
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
    try:
        with (
            open(descriptor, "wb") as raw,
            gzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
        ):
            for name in sorted(tree):
                content, entry = tree[name], tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.mode = len(content), _TIME, _mode(content)
                archive.addfile(entry, io.BytesIO(content))
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def unpack_tree(path: Path, folder: Path) -> None:
    """Unpack a file that `pack_tree` wrote."""
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None  # noqa: S101 - there is nothing but files
            write_tree({member.name: file.read()}, folder)


def _mode(content: bytes) -> int:
    return 0o755 if is_elf(content) or content.startswith(b"#!") else 0o644


def is_elf(content: bytes) -> bool:
    """Return whether this is a 64-bit program or library."""
    return content.startswith(_MAGIC)


def needed_libraries(content: bytes) -> list[str]:
    """Return the names of the shared libraries that a program or library is linked to."""
    segments = _segments(content)
    entries = [
        entry
        for kind, offset, _, size in segments
        if kind == _PT_DYNAMIC
        for entry in _dynamic_entries(content[offset : offset + size])
    ]
    table = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    strings = _file_offset(segments, table)
    return [_string(content, strings + value) for tag, value in entries if tag == _DT_NEEDED]


def _segments(content: bytes) -> list[_Segment]:
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    segments = []
    for start in range(table, table + size * count, size):
        kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", content, start)
        segments.append((kind, offset, address, in_file))
    return segments


def _dynamic_entries(section: bytes) -> list[tuple[int, int]]:
    entries = []
    for tag, value in struct.iter_unpack("<qQ", section[: len(section) // 16 * 16]):
        if tag == _DT_NULL:
            break
        entries.append((tag, value))
    return entries


def _file_offset(segments: list[_Segment], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return offset + address - start
    return 0


def _string(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()
