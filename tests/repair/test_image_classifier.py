"""Tests of edgeflare.repair.image_classifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from edgeflare.repair.image_classifier import require_image_classifier

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_classifier_of_images_can_be_repaired() -> None:
    require_image_classifier(load_pair(EXAMPLES / "fashion_lenet4").interface, "lenet4")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spoken_words", "the domain audio and the task classification"),
        ("face_detection", "the domain image and the task detection"),
    ],
)
def test_other_domains_and_tasks_are_refused(name: str, kind: str) -> None:
    with pytest.raises(UserError, match=f"of images with one input, and {name} is of {kind}: "):
        require_image_classifier(load_pair(EXAMPLES / name).interface, name)


def test_several_inputs_are_refused() -> None:
    interface = PairInterface(inputs=(PairInput("image"), PairInput("offset", search=False)))
    with pytest.raises(UserError, match="stereo is of several inputs and the task classification"):
        require_image_classifier(interface, "stereo")
