from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from edgeflare.domains.image.preprocess import Preprocess
from edgeflare.models.invocation import Invocation
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from image_interfaces import image_interface

SOUND = PairInput(
    "sound",
    "audio",
    {
        "sample_rate": 8_000,
        "samples": 8_000,
        "front_end": {"name": "spectrum", "frame_length": 256, "frame_step": 128},
    },
)
STATE = Invocation(state={"state": "next"}, frames=61, shapes={"x": (1, 2)})


@pytest.mark.parametrize(
    "interface",
    [
        image_interface(),
        image_interface().with_outputs("logits"),
        PairInterface((PairInput("", "array"),)),
        PairInterface((SOUND,), invocation=STATE),
        PairInterface((SOUND, PairInput("speaker", "array", {"lowest": 0.0}, search=False))),
    ],
)
def test_what_is_written_is_what_is_read(interface: PairInterface) -> None:
    told = json.loads(json.dumps(interface.to_json()))
    again = PairInterface.from_json(told)
    assert json.loads(json.dumps(again.to_json())) == told
    assert again.domain_name == interface.domain_name
    assert again.invocation == interface.invocation


def test_a_pair_of_images_is_described_as_it_always_was() -> None:
    assert set(image_interface().to_json()) == {"outputs", "preprocess"}
    assert None not in image_interface().to_json()["preprocess"].values()  # TOML has no null
    said = image_interface(Preprocess(layout="NCHW", rounding="truncate"))
    assert PairInterface.from_json(said.to_json()) == said
    assert (
        said.to_json()["preprocess"].items() >= {"layout": "NCHW", "rounding": "truncate"}.items()
    )


def test_settings_that_are_none_are_one_line(refusal: Callable[..., str]) -> None:
    def sound(**settings: object) -> str:
        return refusal(PairInput, "sound", "audio", settings)

    assert "unknown key smaple_rate (did you mean 'sample_rate'?)" in sound(smaple_rate=1)
    assert "[inputs.sound]: sample_rate is 'x': expected `int`, got `str`" in sound(sample_rate="x")
    assert "sample_rate has to be a number of Hz" in sound(sample_rate=0)
    assert "samples is missing" in sound(front_end={"name": "log-mel"})
    assert "front_end is 'mfcc': expected `table`, got `str`" in sound(front_end="mfcc")
    front_end = {"name": "mfc"}
    assert "did you mean 'mfcc'" in sound(samples=1, front_end=front_end)
    front_end = {"name": "spectrum", "frame_length": "256", "frame_step": "1"}
    assert "frame_length is '256'" in sound(samples=1, front_end=front_end)
    assert "unknown domain 'imge'" in refusal(PairInput, "x", "imge")
    assert "unknown task 'clasification'" in refusal(PairInterface, task="clasification")
    assert "unknown key thres" in refusal(PairInterface, task_settings={"thres": 1})
