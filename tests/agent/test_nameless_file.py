"""A file without a name, in memory or, on systems that have no such files, in a folder."""

from __future__ import annotations

import os

import pytest

from edgeflare_agent.runtime.nameless_file import nameless_file


@pytest.mark.parametrize("in_memory", [True, False])
def test_it_is_empty_and_keeps_what_is_written(
    monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    file = nameless_file("edgeflare-test")
    try:
        assert os.fstat(file).st_size == os.fstat(file).st_nlink == 0
        assert os.write(file, b"some") == 4
        assert os.pread(file, 9, 0) == b"some"
    finally:
        os.close(file)
