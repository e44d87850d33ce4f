"""A repair of the example pair, made once for all tests that look, and the document of another.

The other one is what `--method shifts` wrote of a run of the same pair, whose boundaries were
moved, but for the inputs that it shows and what identifies the machine.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from brief_commands import brief_repairs
from called_commands import EXAMPLE, completed
from edgeflare.repair.repair_document import RepairDocument
from made_once import made_once

ROOT = Path(__file__).parents[2]
BY_SHIFTS = ROOT / "tests" / "repair" / "shifts" / "repair_by_shifts.json"


@pytest.fixture(scope="session")
def repaired_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a repair that is written; tests copy it before they change it."""
    pytest.importorskip("litert_quantizer")
    return made_once(tmp_path_factory, "repaired_example", _repair) / "out"


def _repair(folder: Path) -> None:
    options = ("--method", "weights-only", "--device", "emulated-xnnpack", "--out", folder / "out")
    any_cost = ("--max-latency", "none")  # on some machines it is slower than 8 bits
    with brief_repairs():
        completed("repair", EXAMPLE, *options, *any_cost)


def repair_by_shifts() -> RepairDocument:
    """Return the document of a repair by shifts."""
    return msgspec.json.decode(BY_SHIFTS.read_bytes(), type=RepairDocument)
