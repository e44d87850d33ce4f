"""The page: everything of the run is in it, and nothing in it comes from elsewhere."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest

from documents import REPLAY, Document
from edgeflare.pages.facts import number
from edgeflare.report.html.explanation_view import ExplanationView, LayerView
from edgeflare.report.html.run_html import run_html
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from parsed_pages import Attributes, Parsed

pytestmark = pytest.mark.slow

Render = Callable[..., str]


def cards(page: str) -> dict[str, Attributes]:
    """The cards of a page by their ids."""
    return {str(one["id"]): one for one in Parsed(page).all("article")}


def test_it_is_well_formed(page: str) -> None:
    parsed = Parsed(page)
    assert parsed.open == []
    ids = [one["id"] for _, one in parsed.elements if "id" in one]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, ids[0]) in ids
        if (attributes.get("href") or "").startswith("#") and "xlink:href" not in attributes:
            assert str(attributes["href"])[1:] in ids


def test_every_entry_has_a_card_with_its_figures(document: Document, page: str) -> None:
    shown = cards(page)
    sections = {"deviating_seeds": "deviating", "findings": "finding"}
    for key, section in sections.items():
        assert document[key]
        for entry in document[key]:
            card = shown.pop(f"{section}-{entry['seed_id']}")
            assert float(str(card["data-strength"])) == entry["strength"]
            assert card["data-sort"] == entry["cause"]
            assert int(str(card["data-queries"])) == entry["queries"]
            labels = {str(label) for label in entry["labels"].values()}
            assert set(str(card["data-classes"]).split()) == labels
    assert not shown


def test_headings_are_in_their_order_and_leave_no_level_out(page: str) -> None:
    """Seeds that already deviate come before the findings."""
    headings = [one.strip() for one in re.findall(r"<h2[^>]*>([^<]*)", page)]
    places = [headings.index(name) for name in ("Figures", "Charts", "What ran where")]
    assert places == sorted(places)
    assert headings.index("Seeds that already deviate") < headings.index("Findings")
    levels = [int(tag[1]) for tag, _ in Parsed(page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_figures_are_those_of_the_document(document: Document, page: str) -> None:
    text = Parsed(page).text
    totals = document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    assert f"{totals['findings']} of {searched} seeds" in text
    assert (
        f"{number(totals['mean_queries'])} mean, {number(totals['median_queries'])} median" in text
    )
    assert document["devices"][0]["provenance"]["runtime_version"] in text


def test_searching_and_refining_are_apart(document: Document, rendered: Render) -> None:
    assert "refining" not in Parsed(rendered()).text
    document["totals"] |= {
        "queries": 597, "device_queries": 150, "wall_seconds": 8.0, "refine_seconds": 198.0,
        "refined": 40, "refine_queries": 24200, "refine_device_queries": 420,
        "shrink_queries": 24160, "shrink_device_queries": 380, "shrink_seconds": 198.0,
    }  # fmt: skip
    text = " ".join(Parsed(rendered()).text.split())
    assert "searching 597 queries, 150 on the device, 8.0 s" in text
    assert (
        "refining 24,200 queries, 420 on the device, 198.0 s: shrinking 24,160 in 198.0 s" in text
    )


def test_every_picture_says_what_it_is(document: Document, page: str) -> None:
    images = Parsed(page).all("img")
    assert len(images) == 3 * len(document["findings"]) + len(document["deviating_seeds"])
    assert all(image["alt"] and image["width"] and image["height"] for image in images)
    seed_id = document["findings"][0]["seed_id"]
    for what in ("Seed", "Trigger", "Difference"):
        assert f"{what} of {seed_id}" in {image["alt"] for image in images}
    assert re.search(r"<figcaption>difference ×&nbsp;(½|\d+)</figcaption>", page)
    assert not re.search(r"<figcaption>difference</figcaption>", page)


def test_every_field_has_a_label(page: str) -> None:
    for tag in ("select", "input"):
        for control in re.findall(rf"<{tag}\b[^>]*>", page):
            before = page[: page.index(control)]
            assert before.rindex("<label>") > before.rfind("</label>"), control


def test_names_are_shown_and_never_read_as_markup(document: Document, rendered: Render) -> None:
    document["pair"]["name"] = document["devices"][0]["name"] = "<b onclick=x>pair</b>"
    document["warnings"] = ["</p><script>alert(1)</script>"]
    parsed = Parsed(rendered())
    assert len(parsed.all("script")) == 1
    assert not parsed.all("b")
    assert not any(name.startswith("on") for _, one in parsed.elements for name in one)
    for name in (*document["classes"], document["pair"]["name"], *document["warnings"]):
        assert name in parsed.text


def test_nothing_in_it_comes_from_elsewhere(page: str) -> None:
    parsed = Parsed(page)
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "xlink:href", "action", "poster", "data", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, name, value)
    style = page[page.index("<style>") : page.index("</style>")]
    assert "@import" not in style
    assert all(part.startswith('"data:') for part in re.findall(r"url\(([^)]*)", style))


def test_its_policy_lets_its_own_script_run_and_no_other(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = [
        str(one["content"])
        for one in Parsed(page).all("meta")
        if one.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_what_explain_found_is_shown(document: Document, rendered: Render) -> None:
    first, second, *_ = document["findings"]
    found = ExplanationView(
        "kernel (delegate)",
        why="only XNNPACK decides so",
        next_step="`edgeflare conform` tells which operators are wrong",
        onset="Device and twin part at 1 CONV_2D",
        votes=(("twin, builtin", "ankle boot"), ("device", "the same")),
        layers=(
            LayerView("0 CONV_2D", 0.0),
            LayerView("1 CONV_2D", 3.0, 1.5, begins=True),
            LayerView("2 FULLY_CONNECTED", 12.0, 6.0),
        ),
        device="a board",
    )
    page = rendered({first["seed_id"]: found})
    text = Parsed(page).text
    assert text.count("Verdict: kernel (delegate).") == 1
    assert (
        "Only XNNPACK decides so. Device and twin part at 1 CONV_2D. Next: edgeflare conform tells"
        " which operators are wrong." in text
    )
    assert "<code>edgeflare conform</code> tells" in page
    assert "Looked at on a board, which is not the run's device." in text
    own = rendered({first["seed_id"]: ExplanationView("kernel", device=first["device"])})
    assert "Looked at on" not in own
    assert "Along 3 operators: up, device and twin, at most 12.0 quantization units" in text
    assert "twin, builtin ankle boot device the same" in text
    assert page.count('class="divergence"') == 1
    before, after = page.split("Verdict:")
    assert before[before.rindex("<article") :].startswith(
        f'<article class="card" id="finding-{first["seed_id"]}"'
    )
    assert f'id="finding-{second["seed_id"]}"' in before + after


def test_a_verdict_alone_is_enough_and_there_may_be_none(
    document: Document, rendered: Render
) -> None:
    (first, *_) = document["findings"]
    page = rendered({first["seed_id"]: ExplanationView("compression")})
    assert "Verdict: compression." in Parsed(page).text
    assert 'class="divergence"' not in page
    assert "Who decided what" not in page
    without = rendered()
    assert "Verdict" not in without
    assert 'class="explained"' not in without


def test_equal_verdicts_are_counted_once_those_that_name_a_layer_first(
    document: Document, rendered: Render
) -> None:
    ids = [one["seed_id"] for one in document["findings"][:4]]
    nowhere = "It begins in no single layer: 3 CONV_2D {}%"
    known = {
        seed_id: ExplanationView("compression", onset=nowhere.format(seed_id)) for seed_id in ids
    }
    known[ids[2]] = ExplanationView("kernels", onset="Device and twin part at 1 ADD")
    text = Parsed(rendered(known)).text
    first, second = (
        "1 of 4: kernels. Device and twin part at 1 ADD.",
        "3 of 4: compression. It begins in no single layer.",
    )
    assert 0 < text.index(first) < text.index(second)


def test_refinement_is_shown_before_and_after(document: Document, rendered: Render) -> None:
    first, second, *_ = document["findings"]
    first["refined"] = {
        "queries": 40, "device_queries": 3, "strength_before": 0.001,
        "distortion_before": {"l2": 4321.0, "linf": 200.0, "mean_abs": 9.0, "changed": 36},
        "file_before": second["file"],
    }  # fmt: skip
    second["refined"] = None
    page = rendered()
    assert page.count("Refined: ") == 1
    assert f"strength 0.001 → {number(first['strength'], 3)}" in page
    assert f"L2 4,321 → {number(first['distortion']['l2'], 0)}" in page
    assert page.count("<figcaption>before</figcaption>") == 1


def test_a_crash_stands_first_and_has_no_strength(document: Document, rendered: Render) -> None:
    weakest = min(document["findings"], key=lambda entry: entry["strength"])
    weakest |= {"kind": "crash", "strength": None}
    weakest["labels"]["device"] = None
    weakest["probabilities"]["device"] = []
    page = rendered()
    shown = [card for name, card in cards(page).items() if name.startswith("finding-")]
    assert shown[0]["data-sort"] == "crash"
    assert shown[0]["data-strength"] == ""
    assert '<option value="crash">crash (1)</option>' in page
    strengths = [float(str(card["data-strength"])) for card in shown[1:]]
    assert strengths == sorted(strengths, reverse=True)


def test_flaky_and_unverified_entries_have_sections_of_their_own(
    document: Document, rendered: Render
) -> None:
    first, second, *rest = document["findings"]
    nothing: Document = {
        "labels": {}, "probabilities": {}, "tied": {}, "cause": None, "strength": None,
    }  # fmt: skip
    page = rendered(
        findings=rest, flaky=[first], unverified=[{**second, **nothing}], stopped_by="interrupt"
    )
    shown = cards(page)
    assert f"flaky-{first['seed_id']}" in shown
    assert f"unverified-{second['seed_id']}" in shown
    assert "This is not the whole run: it was stopped by Ctrl-C" in Parsed(page).text


def test_a_run_that_found_nothing(document: Document, directory: RunDirectory) -> None:
    document["totals"] |= {
        "findings": 0, "deviating_seeds": 0, "success_rate": 0.0,
        "mean_queries": None, "median_queries": None, "mean_device_queries": None,
    }  # fmt: skip
    document |= {"findings": [], "deviating_seeds": []}
    page = run_html(from_json(document), directory, {})
    text = Parsed(page).text
    assert "No input was found" in text
    assert "–" in text
    assert not cards(page)
    assert "<select" not in page
    assert 'id="charts"' not in page


def test_devices_can_be_told_apart_and_paths_of_the_machine_stay_there(
    document: Document, rendered: Render
) -> None:
    document["pair"] |= {"original": "/home/someone/secret/original.tflite"}
    page = rendered()
    assert 'name="device"' not in page
    assert "original.tflite" in page
    assert "someone" not in page
    document["findings"][0]["device"] = "another"
    assert '<option value="another">another (1)</option>' in rendered()


def test_the_same_run_gives_the_same_file(
    document: Document, directory: RunDirectory, page: str
) -> None:
    assert run_html(from_json(document), directory, {}) == page


@pytest.mark.parametrize("missing", ["findings", "seeds"])
def test_pictures_that_are_gone_are_said_to_be(
    document: Document, rendered: Render, missing: str
) -> None:
    for key in ("findings", "deviating_seeds"):
        for entry in document[key]:
            entry["file" if missing == "findings" else "seed_file"] = "gone.png"
    page = rendered()
    assert page.count("its file is gone or damaged") >= len(document["findings"])


def replayed(document: Document, baseline: str | None) -> Document:
    """The document as that of a replay: one input mended, one new, one whose seed is worse."""
    mended, new, worse, *still = document["findings"]
    document["pair"]["compressed"] = "/secret/pair/compressed.tflite"
    return document | {
        "findings": [new, worse, *still],
        "flaky": [],
        "unverified": [],
        "strategy": "replay",
        "replay": {
            **REPLAY,
            "run": {"run": "/secret/runs/before", "devices": ["phone"],
                   "compressed": document["pair"]["compressed"]},
            "baseline": baseline, "mended": [mended], "deviating_seeds": [worse["seed_id"]],
            "new": [new["seed_id"], worse["seed_id"]], "changed_kind": [],
        },
    }  # fmt: skip


def test_a_replay_says_what_became_of_its_inputs(document: Document, directory: Any) -> None:
    mended, new, *_ = document["findings"]
    page = run_html(from_json(replayed(document, "/secret/runs/known")), directory, {})
    text, shown = Parsed(page).text, cards(page)
    count = len(document["findings"]) - 1 + len(document["deviating_seeds"])
    tried = document["totals"]["seeds"]
    assert f"{count} of {tried} inputs that were tried again deviate" in text
    assert "2 are new since known, seeds counted too" in text
    assert "Replay of before (on phone)" in text
    for word in ("led to an input", "ueries for a finding", "already deviate", "secret"):
        assert word not in text
    assert f"mended-{mended['seed_id']}" in shown
    assert shown[f"finding-{new['seed_id']}"]["data-baseline"] == "new"
    assert {card.get("data-baseline") for card in shown.values()} == {"new", "known"}
    assert page.count('<span class="chip new">new</span>') == 2
    assert page.count("Its seed deviates now") == 1
    assert 'name="baseline"' in page


def test_a_replay_in_which_all_is_mended_says_so(document: Document, directory: Any) -> None:
    told = replayed(document, None)
    told["replay"] |= {"mended": document["findings"], "deviating_seeds": [], "new": []}
    page = run_html(from_json(told | {"findings": [], "deviating_seeds": []}), directory, {})
    text = Parsed(page).text
    assert f"None of {document['totals']['seeds']} inputs that were tried again deviates" in text
    assert "No input was found" not in text
    assert 'name="baseline"' not in page
    assert page.count('class="chip mended"') == len(document["findings"])


def test_a_search_has_nothing_of_a_replay(page: str) -> None:
    for word in ("data-baseline", "chip new", "chip mended", "tried again", "EdgeFlare replay"):
        assert word not in re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.S)
