"""A tree of files, path to content: laid out in a folder, packed so that equal trees are equal."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from edgeflare.devices.bundle.elf import is_elf

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
                archive.addfile(_entry(name, tree[name]), io.BytesIO(tree[name]))
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


def _entry(name: str, content: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mtime = _TIME
    entry.mode = _mode(content)
    return entry


def _mode(content: bytes) -> int:
    return 0o755 if is_elf(content) or content.startswith(b"#!") else 0o644
