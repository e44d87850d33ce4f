"""The page of a survey: all of it is shown, as text, and as a browser draws it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from matplotlib.figure import Figure
from selenium.webdriver.common.by import By

from changed_documents import changed, known
from constructed_surveys import (
    CONDITIONS,
    SEVERITIES,
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    gate_entry,
    with_distances,
    without_original,
)
from documents import run_device, run_pair
from edgeflare.pages.chart import Chart, finish
from edgeflare.pages.html_page import html_page
from edgeflare.pages.page import Row, TableCell
from edgeflare.report.html.pictures import Picture
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.presentation.severity_charts import severity_charts
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_tables import CLASSES, heat_tables, worst_first
from edgeflare.survey.presentation.survey_words import field_sentence, headline
from edgeflare.survey.presentation.worst_conditions import CONDITIONS as MOST_CONDITIONS
from edgeflare.survey.presentation.worst_conditions import (
    EXAMPLES,
    worst_conditions,
    worst_conditions_html,
)
from edgeflare.survey.rates.rate_words import bounds, estimated, interval, percent
from edgeflare.survey.record.survey_document import SurveyDocument, SurveyFinding, read_survey
from edgeflare.survey.survey_derivation import survey_document
from parsed_pages import Parsed, asks_for_nothing, well_formed
from surveyed_runs import FINDINGS, surveyed_run

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"
READABLE = 4.5
"""The contrast of text that WCAG asks for, level AA."""


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return surveyed_run(tmp_path / "run")


@pytest.fixture
def document(directory: RunDirectory) -> SurveyDocument:
    return read_survey(directory)


@pytest.fixture
def run(directory: RunDirectory) -> RunDocument:
    return load_document(directory)


def with_examples(document: SurveyDocument, directory: RunDirectory) -> str:
    """The page of a survey with the deviations that its run has stored."""
    run = load_document(directory)
    return html_page(survey_page(document, lambda: worst_conditions_html(document, run, directory)))


def rendered(document: SurveyDocument, directory: RunDirectory | None = None) -> Parsed:
    """The page of a survey, perhaps without a run, once it is well formed and asks for nothing."""
    whole = None if directory is None else with_examples(document, directory)
    parsed = well_formed(whole or html_page(survey_page(document)))
    asks_for_nothing(parsed)
    return parsed


def test_all_parts_are_in_it(document: SurveyDocument, directory: RunDirectory) -> None:
    parsed = rendered(document, directory)
    for part in (
        "EdgeFlare survey on board",
        f"sneakers {headline(document)}",
        field_sentence(document),
        "✖ rate<0.01 is not held: the rate is above 1 %",
        "the pair's seeds are surveyed",
        document.sentence,
        "It ended when the precision asked for was reached.",
        "machine aarch64",
        "inputs sha256",
        *(f"{name} " for name in document.classes),
    ):
        assert part in parsed.text
    for table in (document.by_condition, document.by_severity, document.by_group):
        for one in table.slices:
            assert f"{one.name} {interval(one.deviation)}" in parsed.text
    titles = [str(cell["title"]) for cell in parsed.all("td") if cell.get("class") == "cell heat n"]
    cells = document.by_cell.slices
    assert len(titles) == len(cells) == 7
    for one, title in zip(cells, titles, strict=True):
        rate = one.rate
        assert title.startswith(f"{one.name}: {percent(rate.value)}, interval")
        assert f"{percent(rate.value)} {bounds(rate)}" in parsed.text


@pytest.mark.slow
def test_the_stored_inputs_of_the_worst_conditions_are_drawn(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument
) -> None:
    parsed = rendered(document, directory)
    drawn = [image for image in parsed.all("img") if str(image["src"]).startswith("data:image/")]
    assert len(drawn) == 2 * 3 + 1
    assert len(parsed.all("article")) == len(FINDINGS) - 1
    assert "severity 5" in parsed.text
    assert "yes → no" in parsed.text
    (directory.path / run.findings[0].file).unlink()
    assert rendered(document, directory).text.count("its file is gone or damaged") == 1


def test_a_baseline_is_a_part_of_its_own() -> None:
    facts = constructed_facts()
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(rng_seed=1))
    document = survey_document(as_asked(facts, sample), sample, about_survey(), baseline)
    parsed = rendered(document)
    assert "Against before" in parsed.text
    part = {"id": "baseline", "aria-labelledby": "baseline-title", "tabindex": "-1"}
    assert part in parsed.all("section")


def test_a_survey_of_little_has_the_parts_that_it_can_have() -> None:
    facts = without_original(constructed_facts(conditions=(), groups=()))
    document = constructed_document(facts, gates=(), warnings=(), stopped_by="interrupt")
    parsed = rendered(document)
    sections = [section["id"] for section in parsed.all("section")]
    assert sections == ["rates", "classes", "release", "method", "ran"]
    assert not parsed.all("svg")
    assert "This is not the whole survey: it was stopped by Ctrl-C" in parsed.text
    assert heat_tables(document) == []
    assert severity_charts(document) == ()


def test_a_task_without_classes_shows_distances() -> None:
    parsed = rendered(constructed_document(with_distances(constructed_facts())))
    assert "mean IoU to the device" in parsed.text
    assert "classes" not in [section["id"] for section in parsed.all("section")]


def test_of_many_classes_the_worst_are_listed() -> None:
    document = constructed_document()
    one = document.by_class.slices[0]
    slices = tuple(replace(one, label=n) for n in range(CLASSES + 5))
    document = changed(document, by_class__slices=slices)
    parsed = rendered(document)
    assert f"The worst {CLASSES} of {CLASSES + 5}; survey.csv has all of them." in parsed.text


def test_hostile_names_stay_text_and_no_folder_of_this_machine_is_in_it() -> None:
    facts = constructed_facts(conditions=(HOSTILE,), groups=(HOSTILE, "b"))
    document = constructed_document(
        facts,
        gates=(changed(gate_entry("rate<0.1", "pass", HOSTILE), gate=HOSTILE),),
        warnings=(HOSTILE,),
        classes=4 * (HOSTILE,),
        pair=run_pair(name=HOSTILE, fingerprint=HOSTILE),
        devices=(run_device(HOSTILE, machine=HOSTILE),),
        stopped_by=HOSTILE,
    )
    document = changed(document, plan__inputs__path="/secret/place/images.npz")
    parsed = rendered(document)
    assert parsed.all("script") == parsed.all("img") == []
    assert "\x1b" not in parsed.page
    assert "secret" not in parsed.page
    assert "images.npz" in parsed.text


def cells(row: Row) -> list[TableCell]:
    return [one for one in row if isinstance(one, TableCell)]


def test_each_cell_of_the_map_has_its_rate_and_interval_in_its_place(
    sampled: SurveyDocument,
) -> None:
    unchanged, found = heat_tables(sampled)
    assert list(found.header) == ["condition", *(f"severity {one}" for one in SEVERITIES)]
    assert [row[0] for row in found.rows] == list(CONDITIONS)
    slices = {(slice_.condition, slice_.severity): slice_ for slice_ in sampled.by_cell.slices}
    shades = [known(one.shade) for one in cells(unchanged.rows[0])]
    for name, row in zip(CONDITIONS, found.rows, strict=True):
        for severity, cell in zip(SEVERITIES, cells(row), strict=True):
            rate = slices[name, severity].rate
            assert (cell.text, cell.below) == (estimated(rate), bounds(rate))
            assert f"{name} {severity}: " in cell.title
            assert f"{rate.seen:,} of these deviate" in cell.title
            shades.append(known(cell.shade))
    assert max(shades) == 100.0
    assert min(shades) >= 0.0


def test_a_cell_of_the_map_is_exact_empty_or_not_shaded() -> None:
    """Where all was asked, where it was not surveyed, and where nothing deviates."""
    document = constructed_document()
    exact = percent(document.unchanged.rate.value)
    unchanged, first, _, *others = document.by_cell.slices
    calm = (changed(one, deviation__value=0.0, deviation__low=0.0) for one in (first, *others))
    alone, found = heat_tables(changed(document, by_cell__slices=(unchanged, *calm)))
    (cell,) = cells(alone.rows[0])
    assert (cell.text, cell.below) == (exact, "exact")
    assert f"{exact}, exact; 60 of 60 asked" in cell.title
    assert [one == "–" for one in found.rows[0]] == [False, False, True, False]
    assert {one.shade for row in found.rows for one in cells(row)} == {0.0}


def texts(chart: Chart) -> set[str]:
    root = ElementTree.fromstring(chart.svg)  # noqa: S314 - ours
    return {"".join(one.itertext()).strip() for one in root.iter() if one.tag.endswith("text")}


def test_labelled_inputs_have_rates_and_accuracy_of_each_arm_by_severity() -> None:
    document = constructed_document()
    rates, accuracy = severity_charts(document)
    first, last = document.unchanged, document.by_severity.slices[-1]
    shares = [percent(one.rate.value) for one in (first, last)]
    assert rates.words == "From {} of the unchanged inputs to {} under severity 5.".format(*shares)
    assert {"device", "by compression", "by kernels", "0", "1", "3", "5"} <= texts(rates)
    assert {"original", "twin", "device", "right"} <= texts(accuracy)


def test_a_task_with_distances_has_these_in_place_of_accuracy_by_severity() -> None:
    document = constructed_document(with_distances(constructed_facts()))
    _, far = severity_charts(changed(document, distance="<script>\x1b</script>"))
    assert far.title == "Distance against severity"
    assert {"twin", "device"} <= texts(far)
    assert "compression" not in far.words
    assert "<script" not in far.svg
    assert "\x1b" not in far.svg


def test_without_an_original_only_kernels_are_drawn() -> None:
    rates, _ = severity_charts(constructed_document(without_original(constructed_facts())))
    assert "by kernels" in texts(rates)
    assert not {"device", "by compression"} & texts(rates)


def test_no_axis_goes_beyond_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device is right about all, or deviates on all."""
    figures: list[Figure] = []

    def kept(title: str, figure: Figure, *rest: Any) -> Chart:
        figures.append(figure)
        return finish(title, figure, *rest)

    monkeypatch.setattr("edgeflare.survey.presentation.severity_charts.finish", kept)
    document = constructed_document()
    unchanged, *severities = (
        changed(
            one,
            deviation__value=1.0,
            deviation__low=0.9,
            deviation__high=1.0,
            accuracy__device__value=1.0,
            accuracy__device__low=1.0,
            accuracy__device__high=1.0,
        )
        for one in (document.unchanged, *document.by_severity.slices)
    )
    severity_charts(changed(document, unchanged=unchanged, by_severity__slices=tuple(severities)))
    limits = [figure.axes[0].get_ylim() for figure in figures]
    assert [high for _, high in limits] == [1.0, 1.0]
    assert all(low >= 0.0 for low, _ in limits)


def test_the_worst_conditions_come_first_with_their_strongest_inputs(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument
) -> None:
    found = worst_conditions(document, run, directory)
    ordered = worst_first(document.by_condition.slices)
    assert [one.name for one in found] == [*(one.condition for one in ordered), "unchanged"]
    shown = {
        one.name: [(example.severity, example.card.entry.seed_id) for example in one.examples]
        for one in found
    }
    assert shown == {"fog": [(5, 0)], "dark": [(3, 2)], "unchanged": [(0, 3)]}
    assert [example.alike for one in found for example in one.examples] == [2, 1, 1]
    for one in found:
        for example in one.examples:
            (group,) = example.card.shots
            kinds = [shot.what for shot in group.shots if isinstance(shot, Picture) and shot.uri]
            changed = ["seed", "trigger", "difference"]
            assert kinds == (["seed"] if one.name == "unchanged" else changed)


def test_only_some_examples_of_many_are_shown(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument
) -> None:
    first, *_ = run.findings
    several = tuple(
        msgspec.structs.replace(
            first, seed_id=n, cause=cause, labels={**first.labels, "twin": n % 2}
        )
        for n, cause in enumerate(2 * ("compression", "kernel", "mixed"))
    )
    run = msgspec.structs.replace(run, findings=several)
    names = [f"condition {n}" for n in range(MOST_CONDITIONS + 2)]
    one = document.by_condition.slices[0]
    slices = tuple(replace(one, condition=name, name=name) for name in names)
    findings = tuple(
        SurveyFinding(seed_id=n, condition=name, severity=1, strength=n / 10)
        for name in names
        for n in range(len(several))
    )
    document = changed(document, by_condition__slices=slices, findings=findings)
    found = worst_conditions(document, run, directory)
    assert [len(one.examples) for one in found] == MOST_CONDITIONS * [EXAMPLES]


def test_a_condition_that_a_gate_names_is_shown_without_examples_too(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument
) -> None:
    dark = tuple(finding for finding in document.findings if finding.condition == "dark")
    document = changed(document, findings=dark)
    found = worst_conditions(document, run, directory)
    assert {one.name: len(one.examples) for one in found} == {"dark": 1, "fog": 0}
    page = worst_conditions_html(document, run, directory)
    assert page.count("none of them is under this condition") == 1
    document = changed(document, gates=())
    assert [condition.name for condition in worst_conditions(document, run, directory)] == ["dark"]


def test_what_the_run_does_not_have_is_no_example(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument
) -> None:
    other = SurveyFinding(seed_id=99, condition="fog", severity=1, strength=None)
    document = changed(document, findings=(other,))
    assert worst_conditions(document, run, directory) == []
    assert worst_conditions_html(document, run, directory) == ""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = surveyed_run(tmp_path_factory.mktemp("survey") / "run")
    text = with_examples(read_survey(directory), directory)
    file = directory.path / "survey.html"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
def test_a_browser_can_read_it_and_it_asks_for_nothing(
    browser: Any, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    assert browser.logged("browser") == []
    assert browser.requested() == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert {kind: one for kind, one in browser.contrasts().items() if one < READABLE} == {}


@pytest.mark.browser
def test_inputs_charts_and_shades_are_drawn(browser: Any, page: Path) -> None:
    browser.open(page)
    drawn = browser.drawn_images()
    assert len(drawn) == 2 * 3 + 1
    assert all(opaque == 1.0 and colours > 5 for _, opaque, colours in drawn)
    charts = browser.driver.find_elements(By.CSS_SELECTOR, ".chart svg")
    assert len(charts) == 2
    for chart in charts:
        assert chart.size["width"] > 300
        assert "device" in {element.text for element in chart.find_elements(By.TAG_NAME, "text")}
    shaded = browser.run(
        "return [...document.querySelectorAll('td.heat')].map((cell) =>"
        " [parseFloat(cell.innerText), getComputedStyle(cell).backgroundColor])"
    )
    by_rate = [float(colour.rpartition("/")[2].rstrip(") ")) for _, colour in sorted(shaded)]
    assert by_rate == sorted(by_rate)
    assert by_rate[-1] > by_rate[0]


@pytest.mark.browser
def test_a_legend_lies_over_no_line(browser: Any, page: Path) -> None:
    """Its texts stand above the highest mark and its limits, in all charts."""
    browser.open(page)
    places = browser.run(
        "return [...document.querySelectorAll('.chart svg')].map((svg) => {"
        " const names = /^(device|twin|original|by .*)$/;"
        " const texts = [...svg.querySelectorAll('text')]"
        ".filter((one) => names.test(one.textContent.trim()));"
        " const grid = [...svg.querySelectorAll('text')]"
        ".filter((one) => /%$/.test(one.textContent.trim()));"
        " const edge = (some, side) => some.map((one) => one.getBoundingClientRect()[side]);"
        " return [Math.max(...edge(texts, 'bottom')), Math.min(...edge(grid, 'top')), texts.length]"
        "})"
    )
    assert [count for _, _, count in places] == [3, 3]
    for bottom, highest_label, _ in places:
        assert bottom < highest_label


@pytest.mark.browser
def test_the_unchanged_inputs_stand_under_no_severity(browser: Any, page: Path) -> None:
    browser.open(page)
    found = browser.run(
        "const row = [...document.querySelectorAll('#heat tr')];"
        "return row.map((one) => [one.children[0].innerText,"
        " one.getBoundingClientRect().top, one.querySelectorAll('td.heat').length])"
    )
    names = [name for name, _, _ in sorted(found, key=lambda one: one[1])]
    assert names == ["", "unchanged inputs", "condition", "fog", "dark"]
    assert [count for _, _, count in found] == [0, 1, 0, 3, 3]


@pytest.mark.browser
def test_tables_fit_into_a_wide_screen_and_are_scrolled_by_keys(
    browser: Any, sampled: SurveyDocument, page: Path, tmp_path: Path
) -> None:
    """With intervals, failures, accuracy of each arm and harm, and differences between groups."""
    file = tmp_path / "survey.html"
    file.write_text(html_page(survey_page(sampled)), encoding="utf-8")
    browser.open(file, width=1440)
    wide = browser.run(
        "return [...document.querySelectorAll('div.wide')].map((one) =>"
        " [one.ariaLabel, one.scrollWidth - one.clientWidth])"
    )
    assert len(wide) == 9
    assert [name for name, beyond in wide if beyond > 0] == []
    browser.open(page, width=360)
    table = browser.driver.find_element(By.CSS_SELECTOR, "#heat div.wide:last-child")
    browser.run("arguments[0].focus()", table)
    assert browser.driver.switch_to.active_element == table
    assert browser.run("return arguments[0].scrollWidth > arguments[0].clientWidth", table)
