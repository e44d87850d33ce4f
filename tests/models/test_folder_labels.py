"""Sub-folders of inputs as their labels."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.core.tensor import Tensor
from edgeflare.models.folder_labels import with_folder_labels
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair_interface import PairInterface


def of(*folders: str) -> Seeds:
    return Seeds(np.zeros((len(folders), 1)), None, folders, folders=folders)


def labels(seeds: Seeds, *classes: str) -> list[int] | None:
    found = with_folder_labels(seeds, classes).labels
    return None if found is None else found.tolist()


def test_a_sub_folder_is_the_class_of_its_name() -> None:
    seeds = of("Ankle boot", "T-shirt_top", "hat")
    assert labels(seeds, "T-shirt/top", "ankle boot") == [1, 0, -1]
    assert labels(seeds) is None
    assert "say classes" in with_folder_labels(seeds, ()).notes[-1]


def test_names_that_differ_by_marks_alone_are_told_apart() -> None:
    assert labels(of("C", "C++", "c"), "C", "C++", "C#") == [0, 1, -1]


def test_a_name_that_several_classes_have_is_no_label() -> None:
    assert labels(of("crane", "bus"), "crane", "bus", "crane") == [-1, 1]


def test_numbers_are_labels_where_no_class_has_such_a_name() -> None:
    assert labels(of("10", "2")) == [10, 2]
    assert labels(of("10", "2"), "2", "10") == [1, 0]


def test_of_some_pictures_each_sub_folder_has_its_share(tmp_path: Path) -> None:
    for name, count in (("a", 6), ("b", 3)):
        (tmp_path / name).mkdir()
        for at in range(count):
            cv2.imwrite(str(tmp_path / name / f"{at}.png"), np.full((4, 4), 9 * at, np.uint8))
    models = ModelInputs(PairInterface(), [Tensor("x", (1, 4, 4, 1), "float32")], "model")
    every = models.load(tmp_path, classes=("b", "a"))
    assert every.labels is not None
    assert every.labels.tolist() == [1] * 6 + [0] * 3
    assert every.names[0] == "a/0.png"
    some = models.load(tmp_path, SeedChoice(limit=3), ("b", "a"))
    assert some.labels is not None
    assert sorted(some.labels.tolist()) == [0, 1, 1]
    assert (every.inputs[list(some.ids)] == some.inputs).all()
