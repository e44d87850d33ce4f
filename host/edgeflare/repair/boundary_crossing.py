"""Inputs near the boundary as they come: a search that only the device leads.

How many inputs near the boundary deviate depends on how one comes there. A search for triggers is
led by the original too and comes upon many; among test images of the same margin they are few. So
mutants of a seed are walked to until the device's label changes, and places on the last stretch of
the way are drawn at random. The original is asked and never heeded. Of what is found so for an int8
LeNet-4 on Fashion-MNIST, 53 % of the ties deviate and 2 % of inputs with margins to .1; of its test
images 57 % and 4 %. Of what boundary bisection finds, 18 % of the latter do.
"""

from __future__ import annotations

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.core.arm import Arm
from edgeflare.core.query import Query
from edgeflare.search.mutation import mutated
from edgeflare.search.operator_selection import image_operators
from edgeflare.search.strategy import SearchGenerator, Start

LEAPS = (8, 16, 32, 64)
"""Mutations in each leap, as boundary bisection has them."""

PLACES = 16
"""Looks on one way; about half of them have a small margin."""

_ASKED = (Arm.ORIGINAL, Arm.DEVICE)


def cross_boundary(start: Start) -> SearchGenerator:
    """Look at inputs about where the device's label changes, on a way of mutants from the seed."""
    operators, rng = image_operators(), start.rng
    label = start.outcome[Arm.DEVICE].label
    near = far = start.image
    for times in LEAPS:
        near = far
        for _ in range(times):
            far = mutated(operators[int(rng.integers(len(operators)))], far, rng)
        far = start.bounds.project(far, start.image)
        (outcome,) = yield (Query(far, _ASKED),)
        if outcome[Arm.DEVICE].label != label:
            break
    else:
        return None
    for place in rng.random(PLACES):
        image = _between(near, far, float(place), rng)
        yield (Query(start.bounds.project(image, start.image), _ASKED),)
    return None


def _between(near: Image, far: Image, place: float, rng: np.random.Generator) -> Image:
    """Return an image on the way, rounded up or down by chance."""
    exact = near + place * (far.astype(np.float64) - near)
    return np.clip(np.floor(exact + rng.random(exact.shape)), 0, 255).astype(np.uint8)
