"""What a probe calls: each interpreter that tests start while `mutants.py` probes imports this.

Into the file `passed` go lines of a mutant's number and the test at that moment, each once for each
process. Which test that is stands in a file of 1,024 bytes, which PROBE_OF_TEST names.
"""

from __future__ import annotations

import builtins
import json
import mmap
import os
from pathlib import Path

_folder = os.environ.get("PROBES_OF_MUTANTS", "")
_told: set[tuple[int, bytes]] = set()
_current: dict[str, mmap.mmap] = {}


def tell(number: int) -> None:
    """Tell that a mutant's place was passed."""
    name = os.environ.get("PROBE_OF_TEST", "")
    test = _test(name) if name else b""
    if (number, test) in _told:
        return
    _told.add((number, test))
    line = json.dumps([number, test.rstrip(b"\0").decode()]) + "\n"
    with Path(_folder, "passed").open("a", encoding="utf-8") as file:
        file.write(line)


def _test(name: str) -> bytes:
    if name not in _current:
        with open(name, "rb") as file:
            _current[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return _current[name][:]


if _folder:
    builtins.probe_of_mutants = tell  # type: ignore[attr-defined]
