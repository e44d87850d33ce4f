"""Runs side by side, on linear models."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from documents import Document, run_document
from edgeflare.core.query import Arm
from edgeflare.replay.run_comparison import compare
from edgeflare.run.run_document import from_json
from laboratory import CLASSES, SIDE, Laboratory, linear
from structured_views import structured_run


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (8, SIDE, SIDE, 1), dtype=np.uint8)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.5, size=weights.shape).astype(np.float32)
    models = {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(bent)}
    return Laboratory(tmp_path, images, models)


def run(laboratory: Laboratory, name: str, **plan: Any) -> Document:
    document = laboratory.run(name, **plan)
    document["pair"]["compressed"] = "compressed.tflite"
    return document


def test_seeds_are_shared_if_their_images_are_whatever_the_pairs_are_called(
    laboratory: Laboratory,
) -> None:
    one = run(laboratory, "one")
    two = run(laboratory, "two", rng_seed=1)
    two["pair"]["name"] = "another name for it"
    laboratory.images = laboratory.images[::-1]
    other = run(laboratory, "other")
    folder = laboratory.folder
    ids = [
        {entry["seed_id"] for key in ("findings", "deviating_seeds") for entry in of[key]}
        for of in (one, two, other)
    ]
    assert ids[0] & ids[1] & ids[2]

    alike = compare({str(folder / "one"): from_json(one), str(folder / "two"): from_json(two)})
    assert alike.shared_seeds == tuple(sorted(ids[0] & ids[1]))

    # The same ids, and the pair is called the same, but they are of other images.
    assert (
        compare(
            {str(folder / "one"): from_json(one), str(folder / "other"): from_json(other)}
        ).shared_seeds
        == ()
    )


def test_a_crash_is_counted_as_one_whatever_its_cause(laboratory: Laboratory) -> None:
    one = run(laboratory, "one")
    two = deepcopy(one)
    two["findings"][0] |= {"kind": "crash", "cause": "kernel"}
    folder = str(laboratory.folder / "one")
    (column, crashed) = compare({folder: from_json(one), f"{folder}/": from_json(two)}).columns
    assert "crash" not in column.causes
    assert crashed.causes["crash"] == 1
    assert sum(crashed.causes.values()) == sum(column.causes.values())


def test_kinds_are_counted_of_runs_whose_task_tells_them_apart() -> None:
    texts, classes = structured_run("transcript"), run_document(findings=[{"seed_id": 2}])
    compared = compare({"texts": texts, "classes": classes})
    assert [one.kinds for one in compared.columns] == [{"word substituted": 1}, {}]
    plain = compared.to_json()["columns"]
    assert plain[0]["kinds"] == {"word substituted": 1}
    assert "kinds" not in plain[1]
