"""Votes with stages of the device's own: what is asked about an input does not hang on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pytest

from edgeflare.core.tensor_rows import GivenRows
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.diagnose.stage_votes import StageVotes, ask_with_stages
from edgeflare.models.invocation import ONCE
from tampering import COMPRESSED, class_reader, signature_of

STAGE = class_reader(COMPRESSED.read_bytes()).stage


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with closing(connect(find_profiles(["emulated-builtin"])[0])) as device:
        yield device


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Four inputs of the model, (4, *shape), int8. The first two are of unlike classes."""
    tensor = signature_of(COMPRESSED.read_bytes()).input
    flat = np.stack([np.full(tensor.shape[1:], value, tensor.dtype) for value in (-128, 0, 127)])
    ramp = np.linspace(-128, 127, flat[0].size).reshape(flat[0].shape).astype(tensor.dtype)
    return np.stack([flat[0], ramp, flat[2], flat[1]])


def asked(
    device: Device, images: np.ndarray, of: Sequence[str], most: int = 20
) -> list[StageVotes]:
    """Ask about inputs, each of which is written as the images that the stages make of it.

    "01231" has image 0 by the device's stage, 1 by the pair's, and then one with each single key.
    """
    own, pairs, *keys = (GivenRows(images[[int(one[at]) for one in of]]) for at in range(5))
    single = dict(zip(("mean", "std", "layout"), keys, strict=True))
    return ask_with_stages(device, COMPRESSED, ONCE, (own, STAGE), (pairs, STAGE), single, most)


def test_keys_are_those_that_change_the_input_and_a_decision_whatever_else_is_asked(
    device: Device, images: np.ndarray
) -> None:
    inputs = ["01231", "00222", "01021", "01220"]
    together = asked(device, images, inputs)
    assert not together[0].shipped.agrees(together[0].pair_inputs)
    assert [list(one.pair_keys) for one in together] == [
        ["mean", "std", "layout"],
        [],
        ["std", "layout"],
        ["mean", "std"],
    ]
    assert together[0].pair_keys["layout"].to_json() == together[0].pair_inputs.to_json()
    assert [one.device_queries for one in together] == [9, 5, 7, 7]
    for one, alone in zip(together, inputs, strict=True):
        (same,) = asked(device, images, [alone])
        assert {key: vote.to_json() for key, vote in one.pair_keys.items()} == {
            key: vote.to_json() for key, vote in same.pair_keys.items()
        }


def test_keys_are_left_out_that_would_take_too_many_queries(
    device: Device, images: np.ndarray
) -> None:
    for most, keys in ((5, ["layout"]), (8, ["mean", "layout"]), (9, ["mean", "std", "layout"])):
        (found,) = asked(device, images, ["01231"], most)
        assert (list(found.pair_keys), found.device_queries <= most) == (keys, True)
