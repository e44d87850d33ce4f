"""What a device says otherwise than its pair, in words."""

from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_interface import read_interface
from edgeflare.record.json_types import JsonValue
from edgeflare.release.phases.answer_phase import other_settings

FRONT_END: dict[str, JsonValue] = {
    "name": "log-mel",
    "frame_length": 200,
    "frame_step": 80,
    "fft_length": 256,
    "bands": 32,
    "lowest_hz": 60.0,
    "highest_hz": 3900.0,
}
SOUND: dict[str, JsonValue] = {"domain": "audio", "samples": 4000, "front_end": FRONT_END}


def test_the_settings_of_a_picture_are_named_that_are_others() -> None:
    own = Settings(mean=(0.5, 0.4, 0.3), channels="bgr")
    said = Settings(scale=255.0, mean=(0.0,), std=(1.0,), device=own)
    found = other_settings(read_interface(said, from_file=True))
    assert found == ("mean 0.5, 0.4, 0.3 instead of 0", "channels bgr instead of rgb")


def test_a_setting_within_the_tables_of_an_input_is_named() -> None:
    own = Settings(inputs={"sound": {"front_end": {"bands": 40}}})
    said = Settings(inputs={"sound": SOUND}, device=own)
    found = other_settings(read_interface(said, from_file=True))
    assert found == ("bands 40 instead of 32",)
