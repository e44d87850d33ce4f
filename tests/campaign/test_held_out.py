"""Held-out images: evaluated once on all arms, kept when a run is resumed, and never searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.campaign.held_out import HeldOut, note_held_out
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair_interface import PairInterface
from edgeflare.run.journal import Journal

MODELS = ModelInputs(PairInterface(), [Tensor("image", (1, 3, 3, 1), "float32")], "the model")


@pytest.fixture
def held_out(tmp_path: Path) -> HeldOut:
    path = tmp_path / "test.npz"
    images = np.arange(4 * 9, dtype=np.uint8).reshape(4, 3, 3, 1)
    np.savez(path, images=images, labels=np.arange(4))
    return HeldOut.load(path, MODELS)


def test_it_is_loaded_as_seeds_are(held_out: HeldOut, tmp_path: Path) -> None:
    told = held_out.to_json()
    assert (told["images"], told["labels"]) == (4, [0, 1, 2, 3])
    assert told["path"] == str(tmp_path / "test.npz")
    with pytest.raises(UserError, match=r"--test: there are no seeds at .*absent\.npz"):
        HeldOut.load(tmp_path / "absent.npz", MODELS)


def test_a_run_is_resumed_with_the_same_images_alone(held_out: HeldOut, tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "run.db", {"seeds": 1})
    note_held_out(journal, held_out, resumed=False)
    note_held_out(journal, held_out, resumed=True)
    moved = HeldOut(tmp_path / "elsewhere.npz", held_out.inputs)
    note_held_out(journal, moved, resumed=True)
    one = held_out.inputs
    others = Seeds(255 - one.inputs, one.labels, one.names)
    for another in (None, HeldOut(held_out.path, others)):
        with pytest.raises(UserError, match=r"was begun with --test .*test\.npz"):
            note_held_out(journal, another, resumed=True)
    journal.close()


def test_a_run_that_was_begun_without_them_stays_so(held_out: HeldOut, tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "run.db", {"seeds": 1})
    with pytest.raises(UserError, match="was begun without --test"):
        note_held_out(journal, held_out, resumed=True)
    note_held_out(journal, None, resumed=True)
    journal.close()
