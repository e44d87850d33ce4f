"""Inputs to judge changed files by: tests/support/judged_images.py."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judged_inputs import FRESH, SEEDS, TIGHT, WIDE
from example_compressions import EXAMPLE
from judged_images import judged_images


@pytest.mark.slow
def test_sets_are_made_of_drawn_images_and_fresh_are_all() -> None:
    pair, profile = load_pair(EXAMPLE), find_profile("emulated-builtin")
    images = np.load(EXAMPLE / "seeds.npz")["images"][:60]
    with ExitStack() as stack:
        one = judged_images(
            pair, EXAMPLE / "seeds.npz", profile, stack, limit=60, seeds=40, count=30
        )
    assert one.opened.ensemble == ("builtin",)
    assert (one.sets[FRESH].images == images).all()
    assert len(one.sets[SEEDS].images) == 40
    known = {image.tobytes() for image in images}
    assert {image.tobytes() for image in one.sets[SEEDS].images} < known
    for name in (TIGHT, WIDE):
        assert len(one.sets[name].images) == 30
        assert known.isdisjoint(image.tobytes() for image in one.sets[name].images)
