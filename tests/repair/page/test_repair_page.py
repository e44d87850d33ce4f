"""A repair as a page: all of it is said, and drawn where there is a browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from edgeflare.errors import UserError
from edgeflare.pages.html_page import html_page
from edgeflare.pages.page import Facts, Section, Sentences, Table
from edgeflare.repair.candidate_details import (
    Block,
    CandidateDetails,
    PrecisionDetails,
    PrecisionStep,
    Residual,
)
from edgeflare.repair.judging.judgement import Change, Figures, SetJudgement
from edgeflare.repair.page.front_figure import front_figure
from edgeflare.repair.page.repair_page import repair_page
from edgeflare.repair.repair_cost import Latency
from edgeflare.repair.repair_document import (
    BeforeAndAfter,
    OfferedCandidate,
    OnDevice,
    RepairDocument,
    RepairedModel,
    SearchComparison,
    SearchFigures,
    TriedCandidate,
    read_repair,
)
from edgeflare.run.run_directory import RunDirectory
from judgements import of_all, one_set
from parsed_pages import Parsed, asks_for_nothing, well_formed
from repaired_example import repair_by_shifts, repaired_example


def html_of(document: RepairDocument, directory: RunDirectory) -> str:
    return html_page(repair_page(document, directory))


def sections(**changes: Any) -> dict[str, Section]:
    """The sections of a repair by shifts that is changed so, by their places in the page."""
    page = repair_page(structs.replace(repair_by_shifts(), **changes), RunDirectory(Path()))
    return {one.id: one for one in page.sections}


def tables(section: Section) -> list[Table]:
    return [one for one in section.blocks if isinstance(one, Table) and one]


def sentences(section: Section) -> str:
    return " ".join(
        line for one in section.blocks if isinstance(one, Sentences) for line in one.sentences
    )


def told(**details: Any) -> Sequence[Any]:
    """What is said of a candidate with such details of precision."""
    made = {"promoted": ("conv_1",), **details}
    mixed = structs.replace(TRIED, details=CandidateDetails(precision=PrecisionDetails(**made)))
    return sections(candidates=(mixed,))["details"].blocks


def test_a_list_of_objects_is_a_table_and_the_rest_are_facts() -> None:
    step = PrecisionStep(
        block="conv_1",
        taken_back=False,
        promoted=1,
        margin_difference=0.5,
        deviating=7,
        size_bytes=43_296,
    )
    other = structs.replace(step, block="head", taken_back=True, margin_difference=12.25)
    facts, table = told(path=(step, other))
    assert facts == Facts("Precision: mixed", (("promoted", "conv_1"),))
    assert table.title == "path"
    assert table.header == [
        "block", "taken back", "promoted", "margin difference", "deviating", "size bytes",
    ]  # fmt: skip
    assert table.rows == [
        ["conv_1", "no", "1", "0.5", "7", "43,296"],
        ["head", "yes", "1", "12.25", "7", "43,296"],
    ]


@given(st.lists(st.builds(PrecisionStep, block=st.text(max_size=5))))
def test_any_details_have_tables_whose_rows_fit_their_headers(path: list[PrecisionStep]) -> None:
    _, *found = told(path=tuple(path))
    assert len(found) == (len(path) > 0)
    for table in found:
        assert len(table.rows) == len(path)
        for row in table.rows:
            assert len(row) == len(table.header)
            assert all(isinstance(cell, str) for cell in row)


def point(name: str, ratio: float | None, score: float | None) -> TriedCandidate:
    return TriedCandidate(name=name, seconds=1, latency_ratio=ratio, score=score, size_bytes=1000)


def drawn(
    candidates: Sequence[TriedCandidate], front: Sequence[str], chosen: str | None = None
) -> Parsed | None:
    document = structs.replace(
        repair_by_shifts(), candidates=tuple(candidates), front=tuple(front), chosen=chosen
    )
    svg = front_figure(document)
    return Parsed(svg) if svg else None


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


def figures(deviating: int) -> Figures:
    return Figures(1600, deviating, deviating // 2, 0, 0, 90 + deviating, 100)


def compared(before: int, after: int, accuracy: Change | None = None) -> SetJudgement:
    return one_set(figures(before), figures(after), before, after, 0.25, accuracy)


TRIED = TriedCandidate(
    name="mixed",
    seconds=1.25,
    size_bytes=43296,
    latency_ratio=0.5,
    latency=(Latency("board", 2e-6, 1e-6, 0.5, 0.48, 0.53, 10),),
    score=0.6,
    sets=of_all(compared(700, 500)),
)
JUDGED = structs.replace(of_all(compared(1700, 900)), seeds=compared(3, 1, Change(2, 0, 0.5)))
ON_BOARD = OnDevice(
    device="board",
    sets={
        "seeds": BeforeAndAfter(figures(3), figures(1)),
        "tight": BeforeAndAfter(figures(9), figures(5)),
    },
    inputs=3200,
    same_labels=3199,
)


def test_candidates_are_marked_and_those_set_aside_have_their_reason() -> None:
    beyond = {"latency": (), "needs": {"--max-size": "+9%"}, "set_aside": "it needs +9%"}
    broken = {"score": None, "sets": None, "set_aside": "it does not load"}
    candidates = (
        structs.replace(TRIED, name="ranges"),
        structs.replace(TRIED, name="float", **beyond),
        structs.replace(TRIED, name="broken", **broken),
    )
    section = sections(candidates=candidates, front=("ranges",), chosen="ranges")["candidates"]
    assert "Pareto front of score, time and bytes: ranges." in sentences(section)
    judged, aside = tables(section)
    changes = ["700 → 500"] * 3
    assert judged.rows == [
        ("ranges", "chosen, front", "0.60", *changes, "× 0.50", "0.48 to 0.53", "43,296", "1.2"),
        ("float", "beyond the limits", "0.60", *changes, "× 0.50", "–", "43,296", "1.2"),
    ]
    assert aside.rows == [("float", "it needs +9%"), ("broken", "it does not load")]


def test_the_judgement_has_sets_true_labels_and_devices() -> None:
    changes = {"chosen": "ranges", "judged": JUDGED, "on_devices": (ON_BOARD,)}
    sets, labels, devices = tables(sections(**changes)["judged"])
    assert sets.title == "ranges on the inputs that judge"
    assert sets.rows[1] == (
        *("tight", "1,600", "1,700 → 900", "850 → 450", "0 → 0"),
        *("1,700", "900", "0.2"),
    )
    assert labels.rows == [("seeds", "100", "93 → 91", "2", "0", "0.5")]
    assert devices.rows == [("board", "12 → 6", "3,199 of 3,200")]


def test_a_search_of_the_repaired_model_stands_beside_the_run() -> None:
    before = SearchFigures(
        seeds=20, deviating_seeds=2, findings=1000, success_rate=0.5, mean_queries=12.25,
        median_queries=9, queries=500,
    )  # fmt: skip
    after = structs.replace(before, success_rate=None, mean_queries=None)
    again = SearchComparison(stopped_by="sigterm", strategy="boundary", before=before, after=after)
    assert "again" not in sections(search=None)
    section = sections(search=again)["again"]
    assert "stopped before its end: SIGTERM" in sentences(section)
    (searches,) = tables(section)
    assert searches.rows == [
        ("before", "2", "1,000", "50.0%", "12.2"),
        ("after", "2", "1,000", "–", "–"),
    ]


def words_of(**changes: Any) -> Sequence[str]:
    in_float = changes.pop("in_float", False)
    repaired = RepairedModel(
        *("board", 2e-6, 1e-6, 0.5, 0.4, 0.625, 10),
        file="repaired.tflite", sha256="", recipe=None, more_in_float=in_float,
        size_before_bytes=100, size_bytes=90,
    )  # fmt: skip
    made = {"repaired": repaired, "chosen": "ranges", "judged": JUDGED, "offered": None}
    document = structs.replace(repair_by_shifts(), **made | changes)
    return repair_page(document, RunDirectory(Path())).words


def test_what_is_written_is_said_with_its_cost() -> None:
    time = "its time: -1.0 µs (-50.0%, -60.0% to -37.5%) on board."
    assert words_of() == [f"repaired.tflite, by ranges, is 10 bytes smaller; {time}"]
    assert words_of(repaired=None, written=False) == []
    assert "computes in float" in words_of(in_float=True)[1]
    assert words_of(fresh_seeds=1_200)[0].startswith("1,200 inputs of --test are seeds too")
    assert words_of(fresh_seeds=1)[0].startswith("1 input of --test is a seed too, ")


def test_what_more_cost_would_give_stands_beside_what_is_chosen() -> None:
    offered = OfferedCandidate(
        candidate="weights-only", options=("--max-latency none",), judged=of_all(compared(725, 3))
    )
    tried = structs.replace(
        TRIED,
        name="weights-only",
        latency_ratio=2.87,
        size_bytes=43600,
        needs={"--max-latency": "+187%"},
    )
    for changes, instead in (({}, "2,700"), ({"written": False, "repaired": None}, "2,175")):
        *_, said = words_of(offered=offered, candidates=(tried,), **changes)
        assert said == (
            f"weights-only: 9 instead of {instead} of these inputs near the boundary deviate, at ×"
            " 2.87 of the time and 43,600 bytes, which needs --max-latency +187%: --max-latency"
            " none"
        )


def test_the_block_to_blame_is_said() -> None:
    blocks = (Block("conv", "relu", (0,)), Block("head", "softmax", (1,)))
    residual = Residual(blocks, {"conv": 0.25, "head": 0.5}, "head")
    section = sections(residual=residual)["residual"]
    assert sentences(section) == "To blame: head."
    (errors,) = tables(section)
    assert errors.rows == [("head", "softmax", "0.5000"), ("conv", "relu", "0.2500")]


__all__ = ["repaired_example"]

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"


@pytest.fixture
def directory(repaired_example: Path, tmp_path: Path) -> RunDirectory:
    """The folder of a repair, for the test to change."""
    return RunDirectory(Path(shutil.copytree(repaired_example, tmp_path / "repair")))


@pytest.fixture
def document(directory: RunDirectory) -> RepairDocument:
    return read_repair(directory)


@pytest.mark.slow
def test_the_candidates_the_sets_and_the_inputs_are_in_it(
    document: RepairDocument, directory: RunDirectory
) -> None:
    parsed = well_formed(html_of(document, directory))
    asks_for_nothing(parsed)
    assert document.written
    assert f"A repaired model is written: {document.why}." in parsed.text
    for tried in document.candidates:
        assert f"{tried.name} " in parsed.text
        assert f"{tried.size_bytes:,}" in parsed.text
    assert document.judged is not None
    for name, one in document.judged.by_set.items():
        counts = f"{one.before.deviating:,} → {one.after.deviating:,}"
        assert re.search(rf"{name} {one.after.inputs:,} {counts}", parsed.text)
    (figure,) = parsed.all("svg")
    assert all(name in str(figure["aria-label"]) for name in document.front)
    cards = [one for one in parsed.all("img") if str(one["src"]).startswith("data:image/")]
    assert len(cards) == len(document.shown) > 12
    for shown in document.shown:
        answers = (shown.original, shown.before, shown.after)
        original, before, after = (document.classes[one.label] for one in answers)
        numbers = r"[\d.]+ [\d.]+"
        assert re.search(
            rf"{shown.file}.{{,120}} original {original} {numbers} before {before} {numbers}"
            rf" after {after} {numbers}",
            parsed.text,
        )


def hostile(tried: TriedCandidate) -> TriedCandidate:
    """A candidate with a hostile text in the place of each that a schema leaves free."""
    details = CandidateDetails(
        precision=PrecisionDetails(
            path=(
                PrecisionStep(
                    block=HOSTILE,
                    taken_back=False,
                    promoted=1,
                    margin_difference=0.5,
                    deviating=7,
                    size_bytes=43_296,
                ),
            ),
            promoted=(HOSTILE,),
        )
    )
    return structs.replace(
        tried,
        name=HOSTILE,
        set_aside=HOSTILE,
        details=details,
        latency=tuple(structs.replace(one, device=HOSTILE) for one in tried.latency),
        needs={"--max-size": HOSTILE},
    )


@pytest.mark.slow
def test_hostile_names_stay_text(document: RepairDocument, directory: RunDirectory) -> None:
    plain = Parsed(html_of(document, directory))
    page = html_of(
        structs.replace(
            document,
            pair=structs.replace(document.pair, name=HOSTILE),
            classes=(HOSTILE,) * len(document.classes),
            devices=tuple(structs.replace(one, name=HOSTILE) for one in document.devices),
            candidates=tuple(map(hostile, document.candidates)),
            why=HOSTILE,
            on_devices=tuple(structs.replace(one, device=HOSTILE) for one in document.on_devices),
            plan=structs.replace(document.plan, max_size=HOSTILE, test=HOSTILE),
            chosen=HOSTILE,
            front=(HOSTILE,),
        ),
        directory,
    )
    parsed = well_formed(page)
    asks_for_nothing(parsed)
    assert "\x1b" not in page
    assert len(parsed.all("img")) == len(plain.all("img"))
    assert "alert('x')" in parsed.text


@pytest.mark.slow
def test_an_input_that_is_gone_or_damaged_is_said_and_one_outside_refused(
    document: RepairDocument, directory: RunDirectory
) -> None:
    first, second, *others = document.shown
    (directory.path / first.file).unlink()
    (directory.path / second.file).write_bytes(b"none")
    parsed = well_formed(html_of(document, directory))
    assert parsed.text.count("its file is gone or damaged") == 2
    outside = structs.replace(first, file="../secret.png")
    with pytest.raises(UserError, match="outside of it"):
        html_of(structs.replace(document, shown=(outside, second, *others)), directory)


@pytest.mark.slow
def test_a_repair_without_a_gain_says_so(document: RepairDocument, directory: RunDirectory) -> None:
    aside = {"score": None, "sets": None, "latency_ratio": None, "set_aside": "it does not load"}
    nothing = structs.replace(
        document,
        candidates=tuple(structs.replace(one, **aside) for one in document.candidates),
        chosen=None,
        judged=None,
        on_devices=(),
        repaired=None,
        shown=(),
        written=False,
        why="no candidate surely gains",
        front=(),
    )
    parsed = well_formed(html_of(nothing, directory))
    assert "No model is written: no candidate surely gains." in parsed.text
    assert parsed.text.count("it does not load") == len(document.candidates)
    assert not parsed.all("svg")
    assert not parsed.all("img")


def test_a_repair_by_shifts_has_its_repairers_and_shifts(tmp_path: Path) -> None:
    """Hostile names of it stay text too."""
    document = repair_by_shifts()
    parsed = well_formed(html_of(document, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    (found,) = (one.details.shifts for one in document.candidates)
    assert found is not None
    net = found.repairers["shifts"].net
    assert f"{100 * net.value:+.1f} ({100 * net.low:+.1f}" in parsed.text
    assert found.shifts.pairs
    for one in found.shifts.pairs:
        a, b = (document.classes[label] for label in one.classes)
        assert f"{a} {b} {one.steps:+}" in parsed.text
    assert f"folds {found.folds}" in parsed.text
    assert f"{found.inputs.triggers} triggers and their seeds, " in parsed.text
    assert document.run is not None
    assert document.run not in parsed.text
    classes = (HOSTILE,) * len(document.classes)
    changed = structs.replace(document, run=HOSTILE, classes=classes, why=HOSTILE)
    parsed = well_formed(html_of(changed, RunDirectory(tmp_path)))
    asks_for_nothing(parsed)
    assert not parsed.all("img")


# In a real browser: wide and narrow, light and dark, without a request.


@pytest.fixture(scope="module")
def pages(repaired_example: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a repair by fitting, and that of one by shifts."""
    folder, directory = tmp_path_factory.mktemp("pages"), RunDirectory(repaired_example)
    documents = {"fitting": read_repair(directory), "shifts": repair_by_shifts()}
    for name, document in documents.items():
        (folder / f"{name}.html").write_text(html_of(document, directory), encoding="utf-8")
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
    figure = browser.driver.find_element("css selector", "figure svg")
    assert figure.size["width"] > 400
    assert figure.size["height"] > 200
    labels = {one.text for one in figure.find_elements("tag name", "text")}
    assert {"weights-only", "rounding+weights-only", "before"} <= labels
    browser.open(pages["fitting"], width=360)
    table = browser.driver.find_element("css selector", "#candidates div.wide")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
