"""Which runs a repair takes, as `edgeflare explain` asks before it offers one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from edgeflare.models.pair import Pair, load_pair
from edgeflare.repair.repair_requirements import LEAST_SEEDS, can_be_repaired

EXAMPLES = Path(__file__).parents[2] / "examples"


def is_taken(pair: Pair, seeds: int = LEAST_SEEDS, replay: object = None) -> bool:
    past: Any = SimpleNamespace(
        document=SimpleNamespace(replay=replay),
        header=SimpleNamespace(pair=pair.interface.to_json()),
    )
    return can_be_repaired(pair, past, seeds)


def test_a_repair_is_offered_only_of_what_it_takes() -> None:
    lenet = load_pair(EXAMPLES / "fashion_lenet4")
    assert is_taken(lenet)
    assert not is_taken(lenet, LEAST_SEEDS - 1)
    assert not is_taken(lenet, replay=object())
    assert not is_taken(replace(lenet, fold_shapes=True))
    assert not is_taken(replace(lenet, original=None))
    swapped = replace(lenet, original=str(lenet.compressed), compressed=Path(str(lenet.original)))
    assert not is_taken(swapped)
    assert not is_taken(load_pair(EXAMPLES / "face_detection"))
