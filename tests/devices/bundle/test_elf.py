from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from edgeflare.devices.bundle.elf import is_elf, needed_libraries

FILES = [Path(sys.executable), *Path(grpc.__file__).parent.glob("_cython/cygrpc*.so")]


@pytest.mark.parametrize("path", FILES, ids=["program", "library"])
def test_the_libraries_are_those_that_the_loader_looks_for(path: Path) -> None:
    needed = needed_libraries(path.read_bytes())
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout

    assert "libc.so.6" in needed
    for name in needed:
        assert name in listed


def test_what_is_no_program_is_seen_to_be_none() -> None:
    assert is_elf(FILES[0].read_bytes())
    assert not is_elf(b"#!/bin/sh\n")
    assert not is_elf(Path(grpc.__file__).read_bytes())
