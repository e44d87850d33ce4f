"""What counts as the same image, and that a run says how much of what it found is."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.console import Console

from documents import REPLAY, Document, as_json
from edgeflare.core.query import Arm
from edgeflare.domains.image import image_fingerprint
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.pages.markdown import markdown_page
from edgeflare.report.html.run_html import run_html
from edgeflare.report.run_figures import duplicate_lines
from edgeflare.report.run_page import print_run, run_page
from edgeflare.run.derive_document import count_duplicates, derive_document, duplicates_of
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from edgeflare.run.run_journal import RunJournal
from edgeflare_operators.operator_registry import Image
from laboratory import CLASSES, SIDE, Laboratory, linear

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


def count(images: Sequence[Image]) -> dict[str, int]:
    return count_duplicates(images, ImageDomain())


def near(first: Image, second: Image) -> bool:
    return count([first, second])["near"] == 2


def flat(value: int, channels: int = 1) -> Image:
    return np.full((28, 28, channels), value, np.uint8)


def changed(image: Image, change: Any) -> Image:
    return np.asarray(np.clip(image.astype(int) + change, 0, 255), np.uint8)


@st.composite
def an_image(draw: st.DrawFn) -> Image:
    """An image of few, so that equal ones and near ones are common."""
    rng = np.random.default_rng(draw(st.integers(0, 4)))
    image = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
    if draw(st.booleans()):
        image[:] = 100
    return changed(image, draw(st.sampled_from((0, 0, 1, -1))))


images = st.lists(an_image(), max_size=9)


@given(images.filter(bool), st.data())
def test_a_copy_is_counted_once_and_makes_its_model_a_duplicate(
    some: list[Image], data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(0, len(some) - 1))
    others = [image for place, image in enumerate(some) if place != chosen]
    had_equal = any((some[chosen] == image).all() for image in others)
    had_near = any(near(some[chosen], image) for image in others)
    before, after = count(some), count([*some, some[chosen].copy()])
    assert after == {
        "triggers": before["triggers"] + 1,
        "distinct": before["distinct"],
        "exact": before["exact"] + (1 if had_equal else 2),
        "near": before["near"] + (1 if had_near else 2),
    }


@given(images, st.integers(1, 4), st.randoms(use_true_random=False))
def test_each_is_compared_with_every_other_in_whatever_order_and_however_many_at_once(
    some: list[Image], block: int, random: Any
) -> None:
    counts = count(some)
    assert counts["exact"] <= counts["near"] <= counts["triggers"] == len(some)
    assert counts["distinct"] <= len(some) - counts["exact"] + counts["exact"] // 2
    close = []
    for one, other in combinations(range(len(some)), 2):
        is_near = near(some[one], some[other])
        assert is_near or not (some[one] == some[other]).all()
        close += [one, other] if is_near else []
    assert counts["near"] == len(set(close))
    random.shuffle(some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(image_fingerprint, "BLOCK", block)
        assert count(some) == counts


@pytest.fixture(scope="module")
def seeds() -> Image:
    with np.load(EXAMPLE / "seeds.npz") as file:
        return np.asarray(file["images"][:200])


NOISE = np.random.default_rng(0).integers(-1, 2, (200, 28, 28, 1))
SCRATCH = 3 * np.eye(28, dtype=int)[:, :, np.newaxis]


@pytest.mark.parametrize(
    "change", [1, -1, NOISE, SCRATCH], ids=["brighter", "darker", "noisy", "scratched"]
)
def test_a_seed_that_hardly_changed_is_near(seeds: Image, change: Any) -> None:
    variants = changed(seeds, change)
    assert count(list(seeds))["near"] == 0
    assert not any((a == b).all() for a, b in zip(seeds, variants, strict=True))
    assert count([*seeds, *variants]) == {
        "triggers": 400, "distinct": 400, "exact": 0, "near": 400,
    }  # fmt: skip


def test_images_with_little_in_them_are_told_apart() -> None:
    noisy = changed(flat(100), np.random.default_rng(0).integers(-1, 2, (28, 28, 1)))
    assert near(flat(100), flat(101))
    assert near(flat(100), noisy)
    ramp = np.repeat(np.linspace(0, 255, 28).astype(np.uint8)[np.newaxis], 28, 0)[..., np.newaxis]
    dot = flat(127)
    dot[14, 14] = 255
    differing = [flat(0), flat(127), flat(255), dot, ramp, ramp[:, ::-1], np.swapaxes(ramp, 0, 1)]
    assert count(differing)["near"] == 0


def test_colours_are_told_apart_where_gray_is_the_same() -> None:
    image = flat(100, 3)
    red, blue = image.copy(), image.copy()
    red[..., 0] += 48
    blue[..., 2] += 126  # as bright
    assert not near(red, blue)
    assert near(red, changed(red, 1))


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (6, 6), (224, 100)])
def test_images_of_any_size_can_be_compared(height: int, width: int, channels: int) -> None:
    wide = np.arange(32, dtype=np.uint8).reshape(4, 8, 1)
    assert count([wide, wide.reshape(8, 4, 1)])["exact"] == 0
    image = np.random.default_rng(0).integers(1, 255, (height, width, channels), dtype=np.uint8)
    assert count([image, image.copy(), changed(image, 1)]) == {
        "triggers": 3, "distinct": 2, "exact": 2, "near": 3,
    }  # fmt: skip


def counted(directory: RunDirectory) -> dict[str, int]:
    """The counts of a run, derived anew from its journal and images."""
    journal = RunJournal.open(directory.journal)
    try:
        totals = as_json(derive_document(directory, journal))["totals"]
        counts: dict[str, int] = totals["duplicates"]
        return counts
    finally:
        journal.close()


def test_a_run_tells_its_duplicates(run: Any, tmp_path: Path) -> None:
    found = run.document["findings"]
    stored = [RunDirectory(run.folder).load_input(entry["file"]) for entry in found]
    whole = {**count(stored), "distinct_seeds": len(found)}
    assert run.document["totals"]["duplicates"] == whole
    assert whole["triggers"] == whole["distinct"] == len(found) > 2

    directory = RunDirectory(tmp_path / "copy")
    shutil.copytree(run.folder, directory.path)
    paths = [directory.path / entry["file"] for entry in found]
    shutil.copyfile(paths[0], paths[1])
    tampered = counted(directory)
    assert tampered["distinct"] == len(found) - 1
    assert tampered["exact"] == 2
    assert tampered["distinct_seeds"] == len(found)
    paths[1].write_bytes(b"no image")
    paths[2].unlink()
    assert counted(directory)["triggers"] == len(found) - 2


def test_of_nothing_there_is_nothing_to_count(tmp_path: Path) -> None:
    found = duplicates_of(RunDirectory(tmp_path), [], ImageDomain())
    assert set(structs.asdict(found).values()) == {0}


def laboratory(folder: Path, seeds: Image) -> Laboratory:
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.5, size=weights.shape).astype(np.float32)
    models = {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(bent)}
    return Laboratory(folder, seeds, models)


def test_seeds_that_are_the_same_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    seeds = np.repeat(rng.integers(0, 256, (4, SIDE, SIDE, 1), dtype=np.uint8), 6, axis=0)
    document = laboratory(tmp_path, seeds).run("run")
    ids = [entry["seed_id"] for entry in document["findings"]]
    different = {seed_id // 6 for seed_id in ids}
    assert len(different) < len(ids)
    assert document["totals"]["duplicates"]["distinct_seeds"] == len(different)


LINE = "3 exact, 7 with near ones; 498 distinct, of 499 seeds"


def shown(document: Document, folder: Path) -> dict[str, str]:
    """The document as each report has it, each with single spaces, and without charts."""
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        print_run(console, from_json(document), "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgeflare.report.html.run_html.charts_of", lambda _: ())
        page = run_html(from_json(document), RunDirectory(folder), {})
    pages = {
        "terminal": capture.get(),
        "summary": markdown_page(run_page(from_json(document))),
        "page": page,
    }
    return {name: " ".join(text.split()) for name, text in pages.items()}


@pytest.mark.parametrize("replayed", [False, True])
def test_reports_tell_it_where_something_was_counted(run: Any, replayed: bool) -> None:
    document = deepcopy(run.document)
    counts = {"triggers": 500, "distinct": 498, "exact": 3, "near": 7, "distinct_seeds": 499}
    document["totals"]["duplicates"] = counts
    document["devices"][0]["provenance"] |= {"delegated_nodes": 3, "total_nodes": 11}
    if replayed:
        document["replay"] = REPLAY
    texts = shown(document, run.folder)
    assert f"duplicates {LINE}" in texts["terminal"]
    assert f"| duplicates | {LINE} |" in texts["summary"]
    if not replayed:
        assert '<dd class="quiet">3 exact, 7 with near ones; 498 dist' in texts["page"]
    document["totals"]["duplicates"] = dict.fromkeys(counts, 0)
    assert duplicate_lines(from_json(document).totals) == []
    assert not any("near ones" in text for text in shown(document, run.folder).values())
