"""A repair in the folder of a check, as far as there is time for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brief_commands import brief_repairs
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.figures.check_figures import MendFigures
from edgeflare.release.mend import mend_figures
from fault_injection import Planted, broken
from tampering import COMPRESSED, EXAMPLE

GRAPH = Graph(COMPRESSED.read_bytes())
FAULT = Planted("bias shifted", GRAPH.tensors[GRAPH.operators[0].outputs[0]].name, amount=4)

Steps = set[tuple[str, int]]


def mended(folder: Path, enough: Callable[[Steps], bool]) -> tuple[MendFigures | None, Steps]:
    """Return the figures of a repair that ends where steps are enough, and the steps."""
    pytest.importorskip("litert_quantizer")
    seen: Steps = set()
    (profile,) = find_profiles(["emulated-xnnpack"])

    def told(step: str, done: int, _total: int) -> None:
        seen.add((step, done))

    with brief_repairs():
        pair = replace(load_pair(EXAMPLE), compressed=folder / "broken.tflite")
        pair.compressed.write_bytes(broken(COMPRESSED.read_bytes(), FAULT))
        found = mend_figures(pair, profile, folder, 100, lambda: enough(seen), told, inputs=False)
    return found, seen


def test_without_time_for_a_candidate_there_are_no_figures(tmp_path: Path) -> None:
    found, seen = mended(tmp_path, bool)
    assert (found, len(seen)) == (None, 1)


@pytest.mark.slow
def test_when_the_time_is_up_what_was_tried_is_judged(tmp_path: Path) -> None:
    found, seen = mended(tmp_path, lambda seen: ("candidates", 2) in seen)
    assert found is not None
    assert found.candidate is not None
    assert max(done for step, done in seen if step == "candidates") == 2
