"""What a ranking measures of models and reads from their runs, in its own folder."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgeflare.bench.grid import BenchRun, Grid, run_grid
from edgeflare.campaign.observer import Observer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.tensor import dequantize
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.domains.image.preprocess import ImageEncoder, preset
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite import open_tflite
from edgeflare.rank import model_measurements
from edgeflare.rank.model_measurements import (
    LEAST_RUNS,
    TIMED_RUNS,
    Labelled,
    ModelMeasurements,
    check_labelled,
    load_measurements,
    measure,
)
from edgeflare.rank.model_runs import CorrectCounts, ModelRuns, read_runs
from edgeflare.run.nearness import nearness_db, rise
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDocument
from example_bench import Watcher
from example_compressions import EXAMPLE, SEEDS, Models
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
    assert 0.0 < measured.latency_seconds < 1000.0
    assert LEAST_RUNS <= measured.timed_runs <= TIMED_RUNS


@pytest.mark.slow
def test_a_model_with_an_input_that_no_search_changes_is_timed_with_both(tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    pair = load_pair(write_two_inputs_pair(tmp_path / "pair"))
    measured = measure(pair, PLAN, None, tmp_path / "kept.json", never)
    assert measured is not None
    assert LEAST_RUNS <= measured.timed_runs <= TIMED_RUNS


def test_a_model_that_cannot_be_searched_is_not_measured(models: Models, tmp_path: Path) -> None:
    plan = replace(PLAN, strategy="gradient", goal=Goal(Find.KERNEL))
    with pytest.raises(UserError, match="--find kernel"):
        measure(models.pairs[2], plan, None, tmp_path / "measured.json", never)
    assert not list(tmp_path.iterdir())


def test_what_was_measured_is_not_measured_again(
    models: Models, broken: tuple[ModelMeasurements, Path, Path]
) -> None:
    measured, labelled, kept = broken
    assert load_measurements(models.pairs[2], PLAN, labelled, kept) == measured
    assert json.loads(kept.read_bytes())["measured"] == asdict(measured)


def test_what_was_measured_of_something_else_does_not_count(
    models: Models, broken: tuple[ModelMeasurements, Path, Path], tmp_path: Path
) -> None:
    _, labelled, kept = broken
    pair = models.pairs[2]
    on_another = replace(PLAN, devices=("emulated-builtin",))
    scaled = replace(pair, interface=load_pair(EXAMPLE, Settings(scale=100.0)).interface)
    for other in (
        (models.pairs[0], PLAN, labelled, kept),
        (pair, PLAN, None, kept),
        (scaled, PLAN, labelled, kept),
        (pair, PLAN, models.folder / "seeds.npz", kept),
        (pair, on_another, labelled, kept),
        (pair, replace(PLAN, goal=Goal(ties=True)), labelled, kept),
        (pair, PLAN, labelled, tmp_path / "absent.json"),
    ):
        assert load_measurements(*other) is None


@pytest.mark.parametrize(
    ("edited", "counts"), [({"description": "What people read."}, True), ({"threads": 2}, False)]
)
def test_an_edited_profile_is_another_device(
    models: Models,
    broken: tuple[ModelMeasurements, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    edited: dict[str, Any],
    counts: bool,
) -> None:
    measured, labelled, kept = broken
    profile = replace(find_profile(PLAN.devices[0]), **edited)
    monkeypatch.setattr(model_measurements, "find_profile", lambda *_: profile)
    earlier = load_measurements(models.pairs[2], PLAN, labelled, kept)
    assert earlier == (measured if counts else None)


@pytest.mark.slow
def test_who_stops_keeps_nothing_half_and_without_a_set_there_is_no_accuracy(
    models: Models, tmp_path: Path
) -> None:
    kept = tmp_path / "measured.json"
    assert measure(models.pairs[0], PLAN, None, kept, lambda: True) is None
    assert not kept.exists()
    measured = measure(models.pairs[0], PLAN, None, kept, never)
    assert measured is not None
    assert measured.labelled is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (None, r"--test .*labelled\.npz cannot be read"),
        ("text", r"--test: .*labelled\.npz: not an \.npz file"),
        ("pipe", r"--test: .*labelled\.npz is not a regular file"),
        ({}, r"labelled\.npz tells who is right, and no seed has a label"),
        ({"side": 7, "labels": np.arange(4)}, r"--test: .*npz: images have shape"),
        ({"labels": np.full(4, -1)}, "no seed has a label from 0 to 9"),
        ({"labels": np.array([0, 10, 3, 99])}, "--test: .* the label of seed 1 is 10"),
        ({"targets": np.zeros((4, 10))}, "--test: seeds .*, seed 0: its task reads labels"),
    ],
    ids=["absent", "text", "a pipe", "bare", "small", "unknown", "beyond", "values"],
)
def test_a_labelled_set_has_labels(
    models: Models, tmp_path: Path, arrays: dict[str, Any] | str | None, said: str
) -> None:
    file = tmp_path / "labelled.npz"
    if arrays == "pipe":
        os.mkfifo(file)
    elif isinstance(arrays, str):
        file.write_text(arrays)
    elif arrays is not None:
        save_labelled(file, **arrays)
    with pytest.raises(UserError, match=said):
        check_labelled(models.pairs[0], file)


def save_labelled(file: Path, side: int = 28, **arrays: Any) -> None:
    with np.load(EXAMPLE / "seeds.npz") as seeds:
        np.savez(file, images=seeds["images"][:4, :side, :side], **arrays)


def test_a_negative_label_leaves_its_image_unlabelled(models: Models, tmp_path: Path) -> None:
    save_labelled(tmp_path / "right.npz", labels=np.array([-1, 9, -2, 0]))
    assert check_labelled(models.pairs[0], tmp_path / "right.npz") == 4


SEARCH_PLAN = Plan("boundary", Goal(), ("emulated-xnnpack",), max_queries=60, ensemble=("xnnpack",))


@dataclass(frozen=True)
class Ran:
    """Two runs of the broken model: where they lie, their documents, and what is read."""

    paths: list[Path]
    documents: list[RunDocument]
    searched: ModelRuns


def run(models: Models, out: Path, shrink: int) -> Ran:
    @contextmanager
    def watch(_cell: BenchRun) -> Iterator[Observer]:
        yield Watcher(Interrupt())

    grid = Grid(("boundary",), (0, 1), "boundary", replace(SEARCH_PLAN, shrink=shrink))
    cells = list(
        run_grid(grid, [models.pairs[2]], out, chains=SEEDS, watch=watch, interrupt=Interrupt())
    )
    paths = [out / cell.run for cell, _ in cells]
    return Ran(paths, [document for _, document in cells], read_runs(paths))


@pytest.fixture(scope="module")
def shrunk(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(models, tmp_path_factory.mktemp("shrunk"), 60)


@pytest.fixture(scope="module")
def found(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(models, tmp_path_factory.mktemp("found"), 0)


@pytest.mark.slow
def test_shrinking_changes_neither_queries_nor_strengths(shrunk: Ran, found: Ran) -> None:
    assert any(one.refined for one in shrunk.documents[0].findings)
    np.testing.assert_array_equal(shrunk.searched.queries, found.searched.queries)
    assert np.isfinite(found.searched.queries).any()
    assert shrunk.searched.strengths == pytest.approx(found.searched.strengths)
    assert shrunk.searched.searched == found.searched.searched


@pytest.mark.slow
def test_a_budget_that_is_used_up_is_no_time_limit(found: Ran) -> None:
    assert not np.isfinite(found.searched.queries).all()
    assert found.searched.cut_by_time == 0


@pytest.mark.slow
def test_the_mean_of_the_rises_is_the_area_of_the_run(shrunk: Ran) -> None:
    rises = shrunk.searched.rises
    assert rises is not None
    assert rises.shape == (SEEDS, 2)
    areas = [document.nearness.area for document in shrunk.documents if document.nearness]
    assert rises.mean(axis=0).tolist() == pytest.approx(areas)
    assert 0.0 < min(areas) < max(areas) < 1.0


def test_each_seed_counts_as_near_as_its_finding(shrunk: Ran) -> None:
    rises = shrunk.searched.rises
    assert rises is not None
    for column, document in enumerate(shrunk.documents):
        expected = np.zeros(SEEDS)
        for entry in document.findings:
            distance = nearness_db(entry)
            assert distance is not None
            expected[entry.seed_id] = rise(distance)
        deviating = [entry.seed_id for entry in document.deviating_seeds]
        assert deviating, "the broken model deviates on seeds"
        expected[deviating] = 1.0
        assert rises[:, column] == pytest.approx(expected)


def test_findings_that_were_not_shrunk_have_no_area(found: Ran) -> None:
    assert found.searched.rises is None


@pytest.mark.slow
def test_a_run_whose_distances_are_gone_is_refused(
    models: Models, shrunk: Ran, tmp_path: Path
) -> None:
    ran = run(models, tmp_path, 1)
    path = ran.paths[0]
    (path / "run.json").unlink()
    with closing(sqlite3.connect(path / "run.db")) as journal, journal:
        journal.execute("DELETE FROM nearness")
    with pytest.raises(UserError, match=r"does not say how near its findings are: remove it"):
        read_runs([path])


@pytest.mark.parametrize("link", ["pair", "pair/measured.json"])
def test_a_ranking_leaves_its_folder_by_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    def recall(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(model_measurements, "load_measurements", recall)
    (tmp_path / "elsewhere").mkdir()
    at = tmp_path / "out" / link
    at.parent.mkdir(parents=True)
    at.symlink_to(tmp_path / "elsewhere")
    grid: Any = SimpleNamespace(plan=None)
    pair: Any = SimpleNamespace(folder_name="pair")
    with pytest.raises(UserError, match="outside of it"):
        model_measurements.measure_all(
            grid, [pair], tmp_path / "out", None, lambda _: None, Interrupt()
        )
