"""What is said of a run that found nothing, because there may be nothing to find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from laboratory import CLASSES, SIDE, Invoke, Laboratory, linear

_RNG = np.random.default_rng(7)
WEIGHTS = _RNG.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
IMAGES = _RNG.integers(0, 256, (5, SIDE, SIDE, 1), dtype=np.uint8)
PLAIN = linear(WEIGHTS)


def louder(image: NDArray[np.generic]) -> NDArray[np.generic]:
    """Other outputs than the plain model's, and always its label."""
    return np.asarray(PLAIN(image) * np.float32(1.5))


def warnings_of(
    folder: Path,
    find: Find,
    original: Invoke,
    twin: Invoke,
    device: Invoke,
    stop_after: int | None = None,
) -> list[str]:
    models = {Arm.ORIGINAL: original, Arm.TWIN: twin, Arm.DEVICE: device}
    document = Laboratory(folder, IMAGES, models).run(
        "run", goal=Goal(find), max_queries=12, stop_after=stop_after
    )
    warnings: list[str] = document["warnings"]
    return warnings


@pytest.mark.parametrize("find", list(Find))
def test_arms_that_do_not_differ(find: Find, tmp_path: Path) -> None:
    (line,) = warnings_of(tmp_path, find, PLAIN, PLAIN, PLAIN)
    first = "twin" if find is Find.KERNEL else "original"
    assert line.startswith(f"nothing was found, and {first} and device gave equal outputs on all 5")


@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_where_only_kernels_differ_it_says_how_to_look_for_that(find: Find, tmp_path: Path) -> None:
    (line,) = warnings_of(tmp_path, find, PLAIN, PLAIN, louder)
    assert "original and twin gave equal outputs on all 5 seeds" in line
    assert "--find kernel" in line


def test_where_only_compression_differs_the_kernels_are_the_same(tmp_path: Path) -> None:
    (line,) = warnings_of(tmp_path, Find.KERNEL, PLAIN, louder, louder)
    assert "twin and device" in line


@pytest.mark.parametrize("find", list(Find))
def test_arms_that_differ_but_not_in_labels_are_not_spoken_of(find: Find, tmp_path: Path) -> None:
    twin = linear(WEIGHTS * np.float32(1.25))
    assert warnings_of(tmp_path, find, PLAIN, twin, louder) == []


def test_nothing_is_said_before_a_seed_was_searched(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, Find.ANY, PLAIN, PLAIN, PLAIN, stop_after=1) == []
