"""The page of a repair: all of it is shown, and as text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.errors import UserError
from edgeflare.repair.page.front_figure import front_figure
from edgeflare.repair.page.judged_parts import candidate_part, judged_part, search_parts
from edgeflare.repair.page.page_part import PagePart
from edgeflare.repair.page.repair_page import detail_parts, render_repair
from edgeflare.repair.repair_file import read_repair
from edgeflare.run.run_directory import RunDirectory
from parsed_pages import Parsed, asks_for_nothing, well_formed
from repaired_example import repair_by_shifts, repaired_example


def parts(details: dict[str, Any]) -> list[PagePart]:
    candidates = [{"name": "ranges", "details": {}}, {"name": "mixed", "details": details}]
    return list(detail_parts({"candidates": candidates, "classes": ["boot", "bag"]}))


def test_a_list_of_objects_is_a_table_and_the_rest_are_facts() -> None:
    path = [{"block": "conv_1", "score": 0.5}, {"block": "head", "micro_seconds": 12.25}]
    (part,) = parts({"precision": {"path": path, "direction": "forward", "steps_back": 2}})
    assert (part.title, part.facts) == (
        "Precision: mixed",
        (("direction", "forward"), ("steps back", "2")),
    )
    (table,) = part.tables
    assert table.title == "path"
    assert table.header == ["block", "score", "micro seconds"]
    assert table.rows == [["conv_1", "0.5", "–"], ["head", "–", "12.25"]]


def test_objects_by_name_are_a_table_too_and_classes_have_their_names() -> None:
    moved = {
        "pairs": [{"classes": [0, 1], "steps": 15}],
        "blocks": {"head": {"net": {"value": 0.25, "low": 0.125}}},
    }
    (part,) = parts({"precision": moved})
    pairs, blocks = part.tables
    assert pairs.rows == [["boot, bag", "15"]]
    assert blocks.rows == [["head", "value 0.25, low 0.125"]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_details_have_tables_whose_rows_fit_their_headers(details: dict[str, Any]) -> None:
    found = parts(details)
    assert len(found) == len(details)
    for part in found:
        for table in part.tables:
            assert table.rows
            for row in table.rows:
                assert len(row) == len(table.header)
                assert all(isinstance(cell, str) for cell in row)


def point(name: str, ratio: float | None, score: float | None) -> Mapping[str, Any]:
    return {"name": name, "latency_ratio": ratio, "score": score, "bytes": 1000}


def drawn(
    candidates: Sequence[Mapping[str, Any]], front: Sequence[str], chosen: str | None = None
) -> Parsed | None:
    svg = front_figure({"candidates": candidates, "front": front, "chosen": chosen})
    return None if svg is None else Parsed(svg)


def words(parsed: Parsed | None) -> str:
    assert parsed is not None
    return str(parsed.all("svg")[0]["aria-label"])


def test_each_candidate_has_a_label_and_the_model_before_too() -> None:
    """A score beyond the axis is in it; long and hostile names are cut and escaped."""
    found = drawn(
        [
            *(point("ranges", 1.0, 0.6), point("float", 0.5, 0.2), point("bad", 1.2, 14.0)),
            *(point("<b>$x$</b>", 1.0, 0.5), point("n" * 50, 1.1, 0.5)),
        ],
        ["float"],
    )
    assert found is not None
    labels = {"ranges", "float", "before", "score", "bad (14.00)", "<b>$x$</b>", "n" * 29 + "…"}
    assert labels <= set(found.texts)
    assert not found.all("b")
    assert "On the front, the fastest first: float (time × 0.50, score 0.20)." in words(found)


def test_times_that_are_far_apart_have_a_logarithmic_axis() -> None:
    near, apart = (drawn([point("a", 1.0, 0.5), point("b", far, 0.5)], []) for far in (1.5, 99.0))
    assert near is not None
    assert apart is not None
    assert {"10", "20", "50"} <= set(apart.texts)
    assert {"1.0", "1.1", "1.2"} <= set(near.texts)


def test_without_a_measured_time_there_is_no_figure() -> None:
    assert drawn([point("ranges", None, 0.6), point("broken", 0.5, None)], []) is None
    assert drawn([], []) is None


VALUES = st.floats(0, 20, allow_nan=False)


@pytest.mark.slow
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
@settings(max_examples=5)
def test_whatever_the_figures_are_it_is_drawn(values: list[tuple[float, float]]) -> None:
    candidates = [point(f"c{n}", *one) for n, one in enumerate(values)]
    found = drawn(candidates, ["c0"], "c0")
    assert found is not None
    assert found.open == []
    assert sum(text.startswith("c") for text in found.texts) == len(values)
    assert f"{len(values)} candidates" in words(found)


def one_set(before: int, after: int, **more: Any) -> dict[str, Any]:
    sides = {"before": before, "after": after}
    counts = {
        when: {"asked": 1600, "deviating": n, "big": n // 2, "strict": 0, "right": 90 + n,
               "labelled": 100}
        for when, n in sides.items()
    }  # fmt: skip
    change = {"mended": before, "broken": after, "p": 0.25}
    return {**counts, **change, "accuracy": None, **more}


def candidate(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "seconds": 1.25, "bytes": 43296, "latency_ratio": 0.5, "score": 0.6,
        "latency": [{"ratio_low": 0.48, "ratio_high": 0.53}], "needs": {},
        "sets": {key: one_set(700, 500) for key in ("seeds", "tight", "wide", "sampled")},
        "set_aside": None, **changes,
    }  # fmt: skip


DOCUMENT: dict[str, Any] = {
    "candidates": [
        candidate("ranges"),
        candidate("float", latency=[], needs={"--max-size": "+9%"}, set_aside="it needs +9%"),
        candidate("broken", score=None, sets=None, set_aside="it does not load"),
    ],
    "front": ["ranges"],
    "chosen": "ranges",
    "judged": {
        "seeds": one_set(3, 1, accuracy={"mended": 2, "broken": 0, "p": 0.5}),
        "tight": one_set(1700, 900),
    },
    "on_devices": [
        {"device": "board", "sets": {"seeds": one_set(3, 1), "tight": one_set(9, 5)},
         "asked": 3200, "same_labels": 3199},
    ],
}  # fmt: skip


def test_candidates_are_marked_and_those_set_aside_have_their_reason() -> None:
    judged, aside = candidate_part(DOCUMENT).tables
    changes = ["700 → 500"] * 3
    assert judged.rows == [
        ("ranges", "chosen, front", "0.60", *changes, "× 0.50", "0.48 to 0.53", "43,296", "1.2"),
        ("float", "beyond the limits", "0.60", *changes, "× 0.50", "–", "43,296", "1.2"),
    ]
    assert aside.rows == [("float", "it needs +9%"), ("broken", "it does not load")]


def test_the_judgement_has_sets_true_labels_and_devices() -> None:
    sets, labels, devices = judged_part(DOCUMENT).tables
    assert sets.rows[1] == (
        *("tight", "1,600", "1,700 → 900", "850 → 450", "0 → 0"),
        *("1,700", "900", "0.2"),
    )
    assert labels.rows == [("seeds", "100", "93 → 91", "2", "0", "0.5")]
    assert devices.rows == [("board", "12 → 6", "3,199 of 3,200")]


def test_a_search_of_the_repaired_model_stands_beside_the_run() -> None:
    assert list(search_parts({"again": None})) == []
    one = {"deviating_seeds": 2, "findings": 1000, "success_rate": 0.5, "mean_queries": 12.25}
    other = {**one, "success_rate": None, "mean_queries": None}
    again = {"strategy": "boundary", "stopped_by": "sigterm", "before": one, "after": other}
    (part,) = search_parts({"again": again})
    assert "stopped before its end: SIGTERM" in part.words
    assert part.tables[0].rows == [
        ("before", "2", "1,000", "50.0%", "12.2"),
        ("after", "2", "1,000", "–", "–"),
    ]


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
    (figure,) = parsed.all("svg")
    assert all(name in str(figure["aria-label"]) for name in document["front"])
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
def test_an_input_that_is_gone_or_damaged_is_said_and_one_outside_refused(
    document: dict[str, Any], directory: RunDirectory
) -> None:
    first, second = (document["shown"][at]["image"] for at in (0, 1))
    (directory.path / first).unlink()
    (directory.path / second).write_bytes(b"none")
    parsed = well_formed(render_repair(document, directory))
    assert parsed.text.count("its file is gone or damaged") == 2
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
    """Hostile names of it stay text too."""
    document = repair_by_shifts()
    parsed = well_formed(render_repair(document, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    (found,) = (one["details"]["shifts"] for one in document["candidates"])
    net = found["repairers"]["shifts"]["net"]
    assert f"{100 * net['value']:+.1f} ({100 * net['low']:+.1f}" in parsed.text
    assert found["shifts"]["pairs"]
    for one in found["shifts"]["pairs"]:
        a, b = (document["classes"][label] for label in one["classes"])
        assert f"{a} {b} {one['steps']:+}" in parsed.text
    assert f"folds {found['folds']}" in parsed.text
    assert document["run"] not in parsed.text
    document |= {key: replaced(document[key], HOSTILE) for key in ("run", "classes", "why")}
    parsed = well_formed(render_repair(document, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    assert not parsed.all("img")


# In a real browser: wide and narrow, light and dark, without a request.


@pytest.fixture(scope="module")
def pages(repaired_example: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a repair by fitting, and that of one by shifts."""
    folder, directory = tmp_path_factory.mktemp("pages"), RunDirectory(repaired_example)
    documents = {"fitting": read_repair(directory), "shifts": repair_by_shifts()}
    for name, document in documents.items():
        (folder / f"{name}.html").write_text(render_repair(document, directory), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in documents}


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", ["fitting", "shifts"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
def test_it_is_readable_and_asks_for_nothing(
    browser: Any, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    page = pages[name]
    browser.open(page, width=width, dark=dark)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    # WCAG asks for a contrast of text of 4.5, level AA.
    assert {kind: one for kind, one in browser.contrasts().items() if one < 4.5} == {}


@pytest.mark.browser
@pytest.mark.slow
def test_inputs_and_the_figure_are_seen_and_wide_tables_scrolled_by_keys(
    browser: Any, pages: dict[str, Path]
) -> None:
    browser.open(pages["fitting"])
    drawn = browser.drawn_images()
    assert len(drawn) == len(browser.driver.find_elements("css selector", ".card"))
    assert all(opaque == 1.0 and colours > 5 for _, opaque, colours in drawn)
    figure = browser.driver.find_element("css selector", ".front svg")
    assert figure.size["width"] > 400
    assert figure.size["height"] > 200
    labels = {one.text for one in figure.find_elements("tag name", "text")}
    assert {"weights-only", "rounding+weights-only", "before"} <= labels
    browser.open(pages["fitting"], width=360)
    table = browser.driver.find_element("css selector", "#candidates div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
