"""ELF files: which shared libraries they ask for."""

from __future__ import annotations

import struct

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian, as all targets are
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5

_Segment = tuple[int, int, int, int]
"""Type, offset in the file, address in memory, size in the file."""


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
