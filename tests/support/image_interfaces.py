"""What the models of pairs of image classifiers take and give."""

from __future__ import annotations

from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.domains.image.preprocess import Preprocess
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInput, PairInterface


def image_interface(preprocess: Preprocess | None = None) -> PairInterface:
    """Return what a pair of image classifiers takes; without preprocessing, pixel / 255."""
    return PairInterface((PairInput("", "image", (preprocess or Preprocess()).to_json()),))


def preprocess_of(pair: Pair) -> Preprocess:
    """Return how the images of a pair become inputs."""
    assert isinstance(pair.interface.domain, ImageDomain)
    return pair.interface.domain.preprocess
