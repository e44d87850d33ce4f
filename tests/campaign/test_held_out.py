"""Held-out images: evaluated once on all arms, kept when a run is resumed, and never searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.campaign.held_out import HeldOut, note_held_out
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.truths import Truths, is_right, truth_distance
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair_interface import PairInterface
from edgeflare.run.journal import Journal
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.regression import Regression

MODELS = ModelInputs(PairInterface(), [Tensor("image", (1, 3, 3, 1), "float32")], "the model")

DECODER = ClassDecoder(Tensor("scores", (1, 4), "float32"), "logits")


@pytest.fixture
def held_out(tmp_path: Path) -> HeldOut:
    path = tmp_path / "test.npz"
    images = np.arange(4 * 9, dtype=np.uint8).reshape(4, 3, 3, 1)
    np.savez(path, images=images, labels=np.arange(4))
    return HeldOut.load(path, MODELS, DECODER)


def test_it_is_loaded_as_seeds_are(held_out: HeldOut, tmp_path: Path) -> None:
    told = held_out.to_json()
    assert (told["images"], told["labels"]) == (4, [0, 1, 2, 3])
    assert told["path"] == str(tmp_path / "test.npz")
    with pytest.raises(UserError, match=r"--test: there are no seeds at .*absent\.npz"):
        HeldOut.load(tmp_path / "absent.npz", MODELS, DECODER)


def test_targets_that_do_not_fit_are_refused_and_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "test.npz"
    images, values = np.zeros((2, 3, 3, 1), np.uint8), np.array([[1.0], [2.0]])
    np.savez(path, images=images, targets=values)
    with pytest.raises(UserError, match=r"--test: seeds .*, seed 0: its task reads labels instead"):
        HeldOut.load(path, MODELS, DECODER)
    task = Regression(tolerance=1.0)
    tensor = Tensor("value", (1, 1), "float32")
    decoder = task.decoder(
        ModelOutputs("m.tflite", (tensor,), frozenset(), 0, (), lambda _: RawBatch(values))
    )
    truths = Truths.from_json(decoder, HeldOut.load(path, MODELS, decoder).to_json())
    assert [is_right(truths[0], truths[at]) for at in range(2)] == [True, True]
    assert truth_distance(truths[0], truths[1]) == 1.0


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
