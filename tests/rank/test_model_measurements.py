from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.goal import Goal
from edgeflare.core.tensor import dequantize
from edgeflare.domains.image.preprocess import ImageEncoder, preset
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare.rank.model_measurements import (
    LEAST_RUNS,
    TIMED_RUNS,
    Labelled,
    ModelMeasurements,
    check_labelled,
    load_measurements,
    measure,
)
from edgeflare.rank.model_runs import CorrectCounts
from edgeflare.run.plan import Plan
from example_compressions import EXAMPLE, Models
from small_pairs import write_two_inputs_pair

PLAN = Plan("random", Goal(), ("emulated-xnnpack",), first=4, ensemble=("xnnpack",))


def never() -> bool:
    return False


def labels_of(model: Path, images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> list[int]:
    with closing(open_tflite(model)) as opened:
        encoder = ImageEncoder(preset("unit"), opened.signature.input)
        raw = opened.submit(encoder.encode(images)).result().outputs
        labels = dequantize(raw, opened.signature.output).argmax(axis=-1)
        return [int(label) for label in labels.ravel()]


@pytest.fixture(scope="module")
def broken(
    models: Models, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ModelMeasurements, Path, Path]:
    """What is measured of the broken model on 150 labelled images, one of them without a class."""
    folder = tmp_path_factory.mktemp("measured")
    labelled, kept = folder / "labelled.npz", folder / "measured.json"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        labels = arrays["labels"][:150].astype(np.int64)
        labels[3] = -1
        np.savez(labelled, images=arrays["images"][:150], labels=labels)
    measured = measure(models.pairs[2], PLAN, labelled, kept, never)
    assert measured is not None
    return measured, labelled, kept


@pytest.mark.slow
def test_the_answers_to_labelled_images_are_those_of_the_models(
    models: Models, broken: tuple[ModelMeasurements, Path, Path]
) -> None:
    measured, labelled, _ = broken
    with np.load(labelled) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    original = labels_of(EXAMPLE / "original.tflite", images)
    compressed = labels_of(models.pairs[2].compressed, images)
    known = labels >= 0
    deviating = sum(a != b for a, b in zip(original, compressed, strict=True))
    assert deviating > 0
    assert measured.labelled == Labelled(
        images=150,
        deviating=deviating,
        tied=0,
        right=CorrectCounts(
            149,
            int((np.array(original) == labels)[known].sum()),
            int((np.array(compressed) == labels)[known].sum()),
        ),
    )


def test_size_and_latency_are_of_the_file_and_its_device(
    models: Models, broken: tuple[ModelMeasurements, Path, Path]
) -> None:
    measured = broken[0]
    assert measured.size_bytes == models.pairs[2].compressed.stat().st_size
    assert 0.0 < measured.latency_ms < 1000.0
    assert LEAST_RUNS <= measured.timed_runs <= TIMED_RUNS


@pytest.mark.slow
def test_a_model_with_an_input_that_no_search_changes_is_timed_with_both(tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    pair = load_pair(write_two_inputs_pair(tmp_path / "pair"))
    measured = measure(pair, PLAN, None, tmp_path / "kept.json", never)
    assert measured is not None
    assert LEAST_RUNS <= measured.timed_runs <= TIMED_RUNS


def test_what_was_measured_is_not_measured_again(
    models: Models, broken: tuple[ModelMeasurements, Path, Path]
) -> None:
    measured, labelled, kept = broken
    assert load_measurements(models.pairs[2], PLAN, labelled, kept) == measured
    assert json.loads(kept.read_bytes())["labelled"] == asdict(measured)["labelled"]


def test_what_was_measured_of_something_else_does_not_count(
    models: Models, broken: tuple[ModelMeasurements, Path, Path], tmp_path: Path
) -> None:
    _, labelled, kept = broken
    pair = models.pairs[2]
    assert load_measurements(models.pairs[0], PLAN, labelled, kept) is None
    assert load_measurements(pair, PLAN, None, kept) is None
    assert load_measurements(pair, PLAN, models.folder / "seeds.npz", kept) is None
    assert (
        load_measurements(pair, replace(PLAN, devices=("emulated-builtin",)), labelled, kept)
        is None
    )
    assert load_measurements(pair, replace(PLAN, goal=Goal(ties=True)), labelled, kept) is None
    assert load_measurements(pair, PLAN, labelled, tmp_path / "absent.json") is None


@pytest.mark.slow
def test_no_set_no_accuracy(models: Models, tmp_path: Path) -> None:
    measured = measure(models.pairs[0], PLAN, None, tmp_path / "measured.json", never)
    assert measured is not None
    assert measured.labelled is None


@pytest.mark.slow
def test_who_stops_keeps_nothing_half(models: Models, tmp_path: Path) -> None:
    kept = tmp_path / "measured.json"
    assert measure(models.pairs[0], PLAN, None, kept, lambda: True) is None
    assert not kept.exists()


def test_no_labelled_set_is_a_pipe(tmp_path: Path, models: Models) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"--labelled: .*pipe is not a regular file"):
        check_labelled(models.pairs[0], tmp_path / "pipe")


@pytest.mark.slow
def test_a_labelled_set_has_labels(models: Models, tmp_path: Path) -> None:
    pair = models.pairs[0]
    with pytest.raises(UserError, match=r"--labelled .*absent\.npz cannot be read"):
        check_labelled(pair, tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("text")
    with pytest.raises(UserError, match=r"--labelled: .*text\.npz: not an \.npz file"):
        check_labelled(pair, tmp_path / "text.npz")
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images = arrays["images"][:4]
    np.savez(tmp_path / "bare.npz", images=images)
    with pytest.raises(UserError, match=r"bare\.npz tells who is right, and no seed has a label"):
        check_labelled(pair, tmp_path / "bare.npz")
    np.savez(tmp_path / "small.npz", images=images[:, :7, :7], labels=np.arange(4))
    with pytest.raises(UserError, match=r"--labelled: .*small\.npz: images have shape"):
        check_labelled(pair, tmp_path / "small.npz")
    np.savez(tmp_path / "wrong.npz", images=images, labels=np.full(4, 99))
    with pytest.raises(UserError, match="no seed has a label from 0 to 9"):
        check_labelled(pair, tmp_path / "wrong.npz")
    np.savez(tmp_path / "values.npz", images=images, targets=np.zeros((4, 10)))
    with pytest.raises(UserError, match=r"--labelled: seeds .*, seed 0: its task reads labels"):
        check_labelled(pair, tmp_path / "values.npz")
    np.savez(tmp_path / "right.npz", images=images, labels=np.array([-1, 9, 10, 99]))
    assert check_labelled(pair, tmp_path / "right.npz") == 4
