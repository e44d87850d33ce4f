"""What a pair says of the device's own input and output stages, over what it says of all arms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.models.interface_settings import merged_tables
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_interface import PairInterface

SOUND = """
[task]
name = "threshold"
threshold = 0.5

[inputs.sound]
domain = "audio"
sample_rate = 8000
samples = 8000

[inputs.sound.front_end]
name = "spectrum"
frame_length = 200
frame_step = 80
"""
IMAGES = """
[preprocess]
scale = 255.0
mean = [0.5]
std = [1.0]
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    np.savez(tmp_path / "seeds.npz", images=np.zeros((1, 2, 2), np.uint8))
    (tmp_path / "compressed.tflite").write_bytes(b"")
    (tmp_path / "own.py").write_text("raise SystemExit")

    def write(text: str) -> Path:
        first = 'compressed = "compressed.tflite"\nseeds = "seeds.npz"\n'
        (tmp_path / "pair.toml").write_text(first + text)
        return tmp_path

    return write


def test_a_device_has_the_keys_that_it_says_and_else_those_of_the_pair(
    written: Callable[[str], Path],
) -> None:
    own = """
    [device.task]
    threshold = 0.55
    [device.inputs.sound]
    front_end.frame_length = 100
    """
    interface = load_pair(written(SOUND + own)).interface
    device = interface.device
    assert device is not None
    assert interface.on_device is device
    assert (interface.task_settings, device.task_settings) == (
        {"threshold": 0.5},
        {"threshold": 0.55},
    )
    (ours,), (theirs,) = interface.inputs, device.inputs
    assert ours.settings["front_end"]["frame_length"] == 200
    assert theirs.settings == {
        "sample_rate": 8000,
        "samples": 8000,
        "front_end": {"name": "spectrum", "frame_length": 100, "frame_step": 80},
    }
    described = json.loads(json.dumps(interface.to_json()))
    assert PairInterface.from_json(described) == interface


def test_preprocessing_of_images_is_the_devices_own_too(written: Callable[[str], Path]) -> None:
    interface = load_pair(written(IMAGES + "[device.preprocess]\nmean = [0.0]\n")).interface
    means = [one.inputs[0].settings["mean"] for one in (interface, interface.on_device)]
    assert [float(np.ravel(mean)[0]) for mean in means] == [0.5, 0.0]
    assert interface.on_device.inputs[0].settings["scale"] == 255.0


def test_a_device_without_stages_of_its_own_is_as_the_pair(written: Callable[[str], Path]) -> None:
    interface = load_pair(written(IMAGES)).interface
    assert interface.device is None
    assert interface.on_device is interface
    assert "device" not in interface.to_json()


def test_stages_of_the_device_count_in_the_fingerprint(written: Callable[[str], Path]) -> None:
    own = "[device.task]\nthreshold = {}\n"
    texts = [IMAGES_WITH_THRESHOLD + one for one in ("", own.format(0.55), own.format(0.6))]
    prints = [load_pair(written(text)).fingerprint() for text in texts]
    assert len(set(prints)) == 3


IMAGES_WITH_THRESHOLD = '[task]\nname = "threshold"\nthreshold = 0.5\n' + IMAGES


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("[device.task]\nname = 'regression'\ntolerance = 1.0\n", "the task is 'threshold'"),
        (
            "[device.task]\nthreshhold = 0.5\n",
            "with what [device] says: [task]: unknown key threshhold",
        ),
        ("[device.inputs.sound]\ndomain = 'array'\n", "domain is what all arms have in common"),
        ("[device.inputs.sound]\nsearch = false\n", "search is what all arms have in common"),
        ("[device.inputs.sound]\ntensor = 'x'\n", "tensor is what all arms have in common"),
        ("[device.inputs.noise]\nsamples = 8000\n", "there is no input noise; inputs are sound"),
        ("[device.inputs]\n", "expected a table [device.inputs.NAME]"),
        ("[device]\nkernels = 'own'\n", "unknown key device.kernels"),
        ("[device]\n", "device is {}; expected a table [device.task]"),
        ("[device.preprocess]\nscale = 2.0\n", "scale is preprocessing of images"),
    ],
)
def test_what_a_device_cannot_have_of_its_own_is_refused(
    written: Callable[[str], Path], refusal: Callable[..., str], own: str, said: str
) -> None:
    line = refusal(load_pair, written(SOUND + own))
    assert said in line
    assert "pair.toml" in line


@pytest.mark.parametrize("trusted", [False, True])
def test_a_front_end_of_the_device_is_a_function_that_needs_trust(
    written: Callable[[str], Path], refusal: Callable[..., str], trusted: bool
) -> None:
    own = "[device.inputs.sound.front_end]\nname = 'own.py:features'\n"
    folder = written(SOUND + own)
    if not trusted:
        assert f"names the Python function {folder / 'own.py'}:features" in refusal(
            load_pair, folder
        )
        return
    pair = load_pair(folder, trust=True)
    assert pair.interface.functions == (f"{folder / 'own.py'}:features",)
    assert len(pair.function_hashes()) == 1
    before = pair.fingerprint()
    (folder / "own.py").write_text("# changed")
    assert pair.fingerprint() != before


def test_a_table_with_another_name_replaces_the_whole_table() -> None:
    base = {"front_end": {"name": "mfcc", "bands": 40}, "samples": 8}
    assert merged_tables(base, {"front_end": {"bands": 20}}) == {
        "front_end": {"name": "mfcc", "bands": 20},
        "samples": 8,
    }
    assert merged_tables(base, {"front_end": {"name": "own.py:f"}}) == {
        "front_end": {"name": "own.py:f"},
        "samples": 8,
    }
    assert base["front_end"] == {"name": "mfcc", "bands": 40}


def test_options_win_over_the_file_and_keep_what_it_says_of_the_device(
    written: Callable[[str], Path],
) -> None:
    folder = written(IMAGES + "[device.preprocess]\nmean = [0.0]\n")
    interface = load_pair(folder, Settings(scale=1.0)).interface
    scales = [one.inputs[0].settings["scale"] for one in (interface, interface.on_device)]
    assert scales == [1.0, 1.0]
