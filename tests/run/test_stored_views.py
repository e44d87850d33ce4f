"""What a document keeps of answers that are no classes, and what it says of one that is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from documents import Document
from edgeflare.core.arm import Arm
from edgeflare.core.joint_answer import joint_answer
from edgeflare.core.outcome import Outcome
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.models.pair_interface import PairInterface
from edgeflare.report.html.page import render_page
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.sorted_findings import labels_of
from edgeflare.tasks.classification import ClassDecoder
from laboratory import CLASSES, SIDE, Laboratory, linear

TOLERANCE = 0.2


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (4, SIDE, SIDE, 1), dtype=np.uint8)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.1, size=weights.shape).astype(np.float32)
    laboratory = Laboratory(
        tmp_path_factory.mktemp("regression"),
        images,
        {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(bent, 0.01)},
        interface=PairInterface(task="regression", task_settings={"tolerance": TOLERANCE}),
    )
    return laboratory.folder / "run", laboratory.run("run")


def damaged(folder: Path, document: Document, change: dict[str, Any]) -> str:
    """Return why a document is refused, one view of which is changed."""
    entries = document["deviating_seeds"] + document["findings"]
    entry = {**entries[0], "answers": [{**entries[0]["answers"][0], **change}]}
    (folder / "run.json").write_text(
        json.dumps({**document, "findings": [entry], "deviating_seeds": []}), encoding="utf-8"
    )
    with pytest.raises(UserError) as refused:
        load_document(RunDirectory(folder))
    return str(refused.value)


def test_distances_are_kept_with_the_values_of_each_arm(
    regression: tuple[Path, Document],
) -> None:
    folder, document = regression
    entries = [*document["deviating_seeds"], *document["findings"]]
    assert entries
    for entry in entries:
        (view,) = entry["answers"]
        assert view["form"] == "values"
        assert view["tolerance"] == TOLERANCE < view["distance"]
        assert entry["strength"] == pytest.approx(view["distance"] / TOLERANCE - 1)
        given = view["values"]
        difference = np.abs(np.subtract(given["original"], given["device"]))
        assert difference.max() == pytest.approx(view["distance"], rel=1e-5)
        assert entry["probabilities"] == {arm: [] for arm in given}
    read = load_document(RunDirectory(folder))
    assert "times the tolerance 0.2" in render_page(read, RunDirectory(folder), {})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tolerance": 0}, "answers[0]"),
        ({"form": "smells"}, "answers[0]"),
        ({"values": {"device": [1.0]}}, "answers[0].values.device has 1 values, but names 3"),
    ],
)
def test_a_damaged_view_is_refused(
    regression: tuple[Path, Document], tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    assert why in damaged(tmp_path, regression[1], change)


def test_a_class_without_a_probability_is_refused(
    regression: tuple[Path, Document], tmp_path: Path
) -> None:
    folder, document = tmp_path, json.loads(json.dumps(regression[1]))
    entry = (document["deviating_seeds"] + document["findings"])[0]
    entry["answers"] = [
        {
            "form": "classes",
            "head": "",
            "classes": [],
            "probabilities": {},
            "decisions": {"twin": 2},
        }
    ]
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UserError, match=r"decisions\.twin is 2, but twin has 0 probabilities"):
        load_document(RunDirectory(folder))


def test_joint_decisions_that_are_too_many_are_numbered() -> None:
    decoder = ClassDecoder(Tensor("scores", (1, 10), "float32"), "logits")

    def clip(*classes: int) -> Any:
        rows = RawBatch(np.eye(10, dtype=np.float32)[list(classes)])
        return joint_answer(list(decoder.read(rows)))

    first, other = clip(*[9] * 30), clip(*[9] * 29, 3)
    assert first.decision > 2**53
    outcomes = [Outcome({Arm.ORIGINAL: first, Arm.DEVICE: one}) for one in (other, first)]
    assert labels_of(outcomes) == ({"original": 0, "device": 1}, {"original": 0, "device": 0})
