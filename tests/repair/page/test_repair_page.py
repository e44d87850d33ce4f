"""Tests of edgeflare.repair.page.repair_page: all of the repair is shown, and as text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.repair.page.repair_page import render_repair
from edgeflare.repair.repair_file import read_repair
from edgeflare.run.run_directory import RunDirectory
from parsed_pages import Parsed, asks_for_nothing, well_formed
from repaired_example import repair_by_shifts, repaired_example

__all__ = ["repaired_example"]

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"


@pytest.fixture
def directory(repaired_example: Path, tmp_path: Path) -> RunDirectory:
    """The folder of a repair, for the test to change."""
    return RunDirectory(Path(shutil.copytree(repaired_example, tmp_path / "repair")))


@pytest.fixture
def document(directory: RunDirectory) -> dict[str, Any]:
    return read_repair(directory)


def replaced(value: Any, text: str) -> Any:
    """The document with a text in the place of each that a schema leaves free."""
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [replaced(one, text) for one in value]
    if isinstance(value, dict):
        return {key: replaced(one, text) for key, one in value.items()}
    return value


@pytest.mark.slow
def test_the_candidates_the_sets_and_the_inputs_are_in_it(
    document: Mapping[str, Any], directory: RunDirectory
) -> None:
    parsed = well_formed(render_repair(document, directory))
    asks_for_nothing(parsed)
    assert document["written"]
    assert f"A repaired model is written: {document['why']}." in parsed.text
    for one in document["candidates"]:
        assert f"{one['name']} " in parsed.text
        assert f"{one['bytes']:,}" in parsed.text
    for name, one in document["judged"].items():
        counts = f"{one['before']['deviating']:,} → {one['after']['deviating']:,}"
        assert re.search(rf"{name} {one['after']['asked']:,} {counts}", parsed.text)
    cards = [one for one in parsed.all("img") if str(one["src"]).startswith("data:image/")]
    assert len(cards) == len(document["shown"]) > 12
    for one in document["shown"]:
        named = (document["classes"][one[arm]["label"]] for arm in ("original", "before", "after"))
        original, before, after = named
        figures = r"[\d.]+ [\d.]+"
        assert re.search(
            rf"{one['image']}.{{,120}} original {original} {figures} before {before} {figures}"
            rf" after {after} {figures}",
            parsed.text,
        )


@pytest.mark.slow
def test_the_figure_says_in_words_what_it_shows(
    document: Mapping[str, Any], directory: RunDirectory
) -> None:
    (figure,) = Parsed(render_repair(document, directory)).all("svg")
    for name in document["front"]:
        assert name in str(figure["aria-label"])


@pytest.mark.slow
def test_hostile_names_stay_text(document: dict[str, Any], directory: RunDirectory) -> None:
    plain = Parsed(render_repair(document, directory))
    changed = deepcopy(document)
    for key in ("pair", "classes", "devices", "candidates", "why", "on_devices", "request"):
        kept = {name: one["sets"] for name, one in enumerate(document["candidates"])}
        changed[key] = replaced(changed[key], HOSTILE)
    for n, one in enumerate(changed["candidates"]):
        one |= {"sets": kept[n], "details": {HOSTILE: {HOSTILE: [{HOSTILE: HOSTILE}]}}}
    changed["chosen"], changed["front"] = HOSTILE, [HOSTILE]
    page = render_repair(changed, directory)
    parsed = well_formed(page)
    asks_for_nothing(parsed)
    assert "\x1b" not in page
    assert len(parsed.all("img")) == len(plain.all("img"))
    assert "alert('x')" in parsed.text


@pytest.mark.slow
def test_an_input_that_is_gone_or_damaged_is_said(
    document: Mapping[str, Any], directory: RunDirectory
) -> None:
    first, second = (document["shown"][at]["image"] for at in (0, 1))
    (directory.path / first).unlink()
    (directory.path / second).write_bytes(b"none")
    parsed = well_formed(render_repair(document, directory))
    assert parsed.text.count("its file is gone or damaged") == 2


@pytest.mark.slow
def test_an_input_outside_of_the_folder_is_refused(
    document: dict[str, Any], directory: RunDirectory
) -> None:
    document["shown"][0]["image"] = "../secret.png"
    with pytest.raises(UserError, match="outside of it"):
        render_repair(document, directory)


@pytest.mark.slow
def test_a_repair_without_a_gain_says_so(document: dict[str, Any], directory: RunDirectory) -> None:
    nothing: dict[str, Any] = {
        "chosen": None,
        "judged": None,
        "on_devices": [],
        "repaired": None,
        "shown": [],
    }
    aside = {"score": None, "sets": None, "latency_ratio": None, "set_aside": "it does not load"}
    tried = [{**one, **aside} for one in document["candidates"]]
    changed = {"written": False, "why": "no candidate surely gains", "candidates": tried}
    parsed = well_formed(render_repair({**document, **nothing, **changed, "front": []}, directory))
    assert "No model is written: no candidate surely gains." in parsed.text
    assert parsed.text.count("it does not load") == len(tried)
    assert not parsed.all("svg")
    assert not parsed.all("img")


def test_a_repair_by_shifts_has_its_repairers_and_shifts(tmp_path: Path) -> None:
    document = repair_by_shifts()
    parsed = well_formed(render_repair(document, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    net = document["repairers"]["shifts"]["net"]
    assert f"{100 * net['value']:+.1f} ({100 * net['low']:+.1f}" in parsed.text
    for one in document["shifts"]["pairs"]:
        a, b = (document["classes"][label] for label in one["classes"])
        assert f"{a} {b} {one['steps']:+}" in parsed.text
    assert document["run"]["path"] not in parsed.text


def test_hostile_names_of_a_repair_by_shifts_stay_text(tmp_path: Path) -> None:
    document = repair_by_shifts()
    document |= {key: replaced(document[key], HOSTILE) for key in ("run", "classes", "why")}
    parsed = well_formed(render_repair(document, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    assert not parsed.all("img")
