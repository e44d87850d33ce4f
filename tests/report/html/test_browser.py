"""The page in a real browser: it is seen, chosen from and sorted, with a mouse and without one."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from documents import REPLAY, Document
from edgeflare.pages.chart import Chart
from edgeflare.report.html.explanation_view import ExplanationView, LayerView
from edgeflare.report.html.run_html import run_html
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json

pytestmark = pytest.mark.browser

COPIES = 6
"""How often each finding of the run is in the page, under other seed ids."""

SHOWN = """
return [...document.querySelectorAll("#gallery .card")].filter((card) => card.checkVisibility())
  .map((card) => Number(card.dataset.seed))
"""


@pytest.fixture(scope="module")
def many(run: Any) -> Document:
    """The run with many findings of several causes, kinds and strengths, and long warnings."""
    document: Document = deepcopy(run.document)
    document["classes"] = ["ankle boot", "<i>bag</i>", "a coat with a name that is far too long"]
    document["findings"] = [
        {
            **deepcopy(entry),
            "seed_id": 100 * n + entry["seed_id"],
            "strength": entry["strength"] * (1 - n / 20),
            "queries": entry["queries"] + 7 * (n * 5 % COPIES),
        }
        for n in range(COPIES)
        for entry in document["findings"]
    ]
    crash = document["findings"][3]
    crash |= {"kind": "crash", "strength": None}
    crash["labels"]["device"], crash["probabilities"]["device"] = None, []
    document["warnings"] = ["the original's outputs hardly vary: check scale, mean and std"]
    return document


def written(
    document: Document, run: Any, path: Path, explanations: dict[int, ExplanationView] | None = None
) -> Path:
    """Write the page of a document of the run, and return where."""
    page = run_html(from_json(document), RunDirectory(run.folder), explanations or {})
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def report(many: Document, run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    first = many["findings"][0]["seed_id"]
    found = ExplanationView(
        "kernel (delegate)",
        onset="Device and twin part at 0 CONV_2D",
        votes=(("twin, xnnpack, 1 thread", "bag (3 times)"),),
        layers=(LayerView("0 CONV_2D", 1.0, begins=True), LayerView("1 SOFTMAX", 7.0, 2.0)),
    )
    return written(many, run, tmp_path_factory.mktemp("report") / "report.html", {first: found})


@pytest.fixture
def shown(browser: Any) -> Callable[[], list[int]]:
    """Return the seed ids of the findings that are shown, in their order."""
    return lambda: [int(seed_id) for seed_id in browser.run(SHOWN)]


def choose(browser: Any, name: str, value: str) -> None:
    Select(browser.driver.find_element(By.NAME, name)).select_by_value(value)


def press(browser: Any, *keys: str) -> None:
    for key in keys:
        ActionChains(browser.driver).send_keys(key).perform()


def focused(browser: Any) -> Any:
    return browser.driver.switch_to.active_element


def test_what_a_page_complains_of_and_asks_for_is_seen(browser: Any, tmp_path: Path) -> None:
    page, picture = tmp_path / "page.html", "http://127.0.0.1:9/picture.png"
    page.write_text(f"<img src='{picture}'><script>console.error('a complaint')</script>")
    browser.open(page)
    WebDriverWait(browser.driver, 60).until(lambda _: "complaint" in str(browser.logged("browser")))
    assert browser.requested() == {page.as_uri(), picture}


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)], ids=["light", "dark"])
def test_it_can_be_read_and_opens_without_a_complaint_or_a_request(
    browser: Any, report: Path, many: Document, width: int, dark: bool
) -> None:
    browser.open(report, width=width, dark=dark)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    time.sleep(0.3)
    assert browser.logged("browser") == []
    assert browser.requested() == {report.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    names = [device["name"] for device in many["devices"]]
    heading = browser.run("return document.querySelector('.kicker').innerText")
    assert heading == f"EDGEFLARE REPORT ON {', '.join(names)}"  # whose case tells names apart
    (background,) = browser.run(
        "return [getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)]"
    )
    assert (max(background) < 60) == dark
    contrasts = browser.contrasts()
    assert len(contrasts) > 20
    assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}


def test_every_picture_and_chart_is_drawn(browser: Any, report: Path) -> None:
    browser.open(report)
    sizes = browser.run("""
        return Promise.all([...document.images].map((image) => {
          image.loading = "eager";
          return image.decode().then(() => image.naturalWidth, () => 0);
        }))
    """)
    assert len(sizes) > 50
    assert set(sizes) == {6}
    charts = browser.run("""
        return [...document.querySelectorAll(".chart svg")].map((svg) => {
          const box = svg.getBoundingClientRect();
          return [box.width, box.height, svg.querySelectorAll("path").length];
        })
    """)
    assert len(charts) == 8
    assert all(width > 250 and height > 120 and paths > 5 for width, height, paths in charts)


def test_findings_are_chosen_by_cause(
    browser: Any, report: Path, many: Document, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    everything = {entry["seed_id"] for entry in many["findings"]}
    assert set(shown()) == everything
    choose(browser, "sort-of", "crash")
    assert shown() == [many["findings"][3]["seed_id"]]
    assert browser.driver.find_element(By.CSS_SELECTOR, "[role=status]").text == (
        f"1 of {len(everything)} shown"
    )
    choose(browser, "sort-of", "compression")
    expected = {
        entry["seed_id"]
        for entry in many["findings"]
        if entry["cause"] == "compression" and entry["kind"] == "deviation"
    }
    assert set(shown()) == expected
    browser.click("button[type=reset]")
    WebDriverWait(browser.driver, 5).until(lambda _: set(shown()) == everything)


def test_findings_are_chosen_by_class_and_by_strength_and_crashes_stay(
    browser: Any, report: Path, many: Document, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    for label in range(3):
        choose(browser, "class", str(label))
        assert set(shown()) == {
            entry["seed_id"] for entry in many["findings"] if label in entry["labels"].values()
        }
    choose(browser, "class", "")
    browser.run("""
        const range = document.querySelector("[name=strength]");
        range.value = 50;
        range.dispatchEvent(new Event("input", {bubbles: true}));
    """)
    strengths = {entry["seed_id"]: entry["strength"] for entry in many["findings"]}
    strongest = max(strength for strength in strengths.values() if strength is not None)
    expected = {
        seed_id
        for seed_id, strength in strengths.items()
        if strength is None or strength >= strongest / 2
    }
    assert 1 < len(expected) < len(strengths)
    assert set(shown()) == expected


ORDERS: dict[str, Callable[[Document], float]] = {
    "strength": lambda one: -(1e9 if one["strength"] is None else one["strength"]),
    "queries": lambda one: one["queries"],
    "-queries": lambda one: -one["queries"],
    "l2": lambda one: one["distortion"]["l2"],
    "seed": lambda one: one["seed_id"],
}


def test_findings_are_sorted(
    browser: Any, report: Path, many: Document, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    by_id = {entry["seed_id"]: entry for entry in many["findings"]}
    for order, key in ORDERS.items():
        choose(browser, "order", order)
        values = [key(by_id[seed_id]) for seed_id in shown()]
        assert len(values) == len(by_id)
        assert values == sorted(values), order


def test_nothing_like_that_is_said_and_undone(
    browser: Any, report: Path, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    choose(browser, "sort-of", "crash")
    choose(browser, "class", next(
        label for label in ("0", "1", "2") if _hides_the_crash(browser, label, shown)
    ))  # fmt: skip
    assert shown() == []
    browser.click(".again")
    assert len(shown()) > 10
    assert focused(browser).get_attribute("name") == "sort-of"


def _hides_the_crash(browser: Any, label: str, shown: Callable[[], list[int]]) -> bool:
    choose(browser, "class", label)
    return shown() == []


def test_a_link_carries_the_choice(
    browser: Any, report: Path, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    choose(browser, "sort-of", "compression")
    choose(browser, "order", "queries")
    chosen, address = shown(), browser.driver.current_url
    browser.driver.get("about:blank")
    browser.driver.get(address)
    assert shown() == chosen
    assert "cause=compression" in address


def test_without_a_mouse(browser: Any, report: Path, shown: Callable[[], list[int]]) -> None:
    browser.open(report)
    press(browser, Keys.TAB)
    assert focused(browser).text == "Skip to the figures"
    while focused(browser).text != "Findings":
        press(browser, Keys.TAB)
    press(browser, Keys.ENTER)
    press(browser, Keys.TAB)
    assert focused(browser).get_attribute("role") == "region"  # the table of those that are alike
    press(browser, Keys.TAB)
    assert focused(browser).get_attribute("name") == "sort-of"
    before = shown()
    press(browser, "cr")
    assert len(shown()) == 1
    press(browser, Keys.HOME)
    assert shown() == before
    names = []
    for _ in range(6):
        press(browser, Keys.TAB)
        names.append(focused(browser).get_attribute("name") or focused(browser).tag_name)
    assert names == ["class", "strength", "order", "button", "a", "button"]
    press(browser, Keys.ENTER)
    lens = browser.driver.find_element(By.ID, "lens")
    assert lens.is_displayed()
    assert f"Seed {before[0]}" in lens.text
    press(browser, Keys.ARROW_RIGHT)
    assert f"Seed {before[1]}" in lens.text
    press(browser, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert f"Seed {before[0]}" in lens.text
    assert len(lens.find_elements(By.TAG_NAME, "img")) >= 1
    press(browser, Keys.ESCAPE)
    WebDriverWait(browser.driver, 5).until(lambda _: not lens.is_displayed())
    assert f"seed {before[0]}" in focused(browser).get_attribute("aria-label")
    summary = browser.driver.find_element(By.CSS_SELECTOR, "#gallery .card summary")
    browser.run("arguments[0].focus()", summary)
    press(browser, Keys.ENTER)
    assert browser.run("return arguments[0].parentElement.open", summary)


def test_a_click_on_a_picture_enlarges_it(browser: Any, report: Path) -> None:
    browser.open(report)
    picture = browser.driver.find_element(By.CSS_SELECTOR, "#deviating .card img")
    small = picture.size["width"]
    ActionChains(browser.driver).scroll_to_element(picture).click(picture).perform()
    large = browser.driver.find_element(By.CSS_SELECTOR, "#lens img")
    assert large.size["width"] > 1.5 * small
    assert large.value_of_css_property("image-rendering") == "pixelated"
    browser.click("#lens [data-close]")
    assert not browser.driver.find_element(By.ID, "lens").is_displayed()


def test_without_scripts_every_finding_is_there(browser: Any, report: Path, many: Document) -> None:
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(report)
        cards = browser.driver.find_elements(By.CSS_SELECTOR, "#gallery .card")
        assert len(cards) == len(many["findings"])
        assert not browser.driver.find_element(By.CSS_SELECTOR, ".filters").is_displayed()
        assert not browser.driver.find_element(By.CSS_SELECTOR, ".enlarge").is_displayed()
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)


def test_a_link_to_a_finding_shows_its_head(browser: Any, report: Path, many: Document) -> None:
    seed_id = many["findings"][-1]["seed_id"]
    browser.open(report)
    browser.run(f"location.hash = 'finding-{seed_id}'")
    covered = f"""
        const top = document.querySelector("#finding-{seed_id} h3").getBoundingClientRect();
        const filters = document.querySelector(".filters").getBoundingClientRect();
        return top.top >= filters.bottom && top.bottom <= innerHeight;
    """
    WebDriverWait(browser.driver, 60).until(lambda _: browser.run(covered))


def test_a_link_with_what_nobody_knows_changes_nothing(
    browser: Any, report: Path, shown: Callable[[], list[int]]
) -> None:
    browser.open(report)
    before = shown()
    browser.driver.get("about:blank")
    browser.driver.get(f"{report.as_uri()}#?cause=nonsense&order=bogus&strength=abc&class=2")
    choose(browser, "class", "")
    assert shown() == before
    assert browser.logged("browser") == []
    values = (
        "return ['sort-of', 'order', 'strength'].map((n) => document.forms[0].elements[n].value)"
    )
    assert browser.run(values) == ["", "matters", "0"]


def test_what_belongs_together_stands_in_a_line(browser: Any, report: Path) -> None:
    browser.open(report)
    tops = browser.run("""
        return [...document.querySelectorAll(".filters label")].map((label) => {
          const text = document.createRange();
          text.selectNodeContents(label.firstChild);
          return text.getBoundingClientRect().top;
        })
    """)
    assert max(tops) - min(tops) < 1
    browser.open(report, width=320)
    browser.click("#gallery .enlarge")
    tops = browser.run("""
        return [...document.querySelectorAll("#lens button")]
          .map((button) => button.getBoundingClientRect().top)
    """)
    assert len(set(tops)) == 1


def test_a_replay_is_chosen_from_by_what_is_new(
    browser: Any, many: Document, run: Any, tmp_path: Path, shown: Callable[[], list[int]]
) -> None:
    mended, *still = many["findings"]
    new = [entry["seed_id"] for entry in still[::3]]
    document = deepcopy(many) | {"findings": still}
    document["pair"]["compressed"] = "one.tflite"
    document["replay"] = {
        **REPLAY,
        "run": {"run": "before", "devices": ["phone"], "compressed": "another.tflite"},
        "baseline": "known", "mended": [mended], "deviating_seeds": new[:1], "new": new,
        "changed_kind": [],
    }  # fmt: skip
    path = written(document, run, tmp_path / "replay.html")
    for dark in (False, True):
        browser.open(path, dark=dark)
        assert {k: v for k, v in browser.contrasts().items() if v < 4.5} == {}
    choose(browser, "baseline", "new")
    assert set(shown()) == set(new)
    choose(browser, "baseline", "known")
    assert set(shown()) == {entry["seed_id"] for entry in still} - set(new)
    browser.driver.refresh()
    assert set(shown()) == {entry["seed_id"] for entry in still} - set(new)
    assert browser.logged("browser") == []


LONG = "resnet50_v2_int8_per_channel_calibrated_on_imagenet_subset_" * 3


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_fit_into_a_window_and_are_whole(
    browser: Any, many: Document, run: Any, tmp_path: Path, width: int
) -> None:
    document = deepcopy(many)
    document["pair"] |= {"name": LONG, "compressed": f"/models/{LONG}.tflite"}
    document["classes"] = [LONG, LONG.upper(), LONG.title()]
    for device in document["devices"]:
        device["name"] = LONG
    for key in ("findings", "deviating_seeds"):
        for entry in document[key]:
            entry |= {"device": LONG, "operators": [LONG], "seed_name": f"{LONG}.png"}
    path = written(document, run, tmp_path / "long.html")
    browser.open(path, width=width)
    browser.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    wide = browser.run("""
        const right = (one) => one.getBoundingClientRect().right;
        return [...document.querySelectorAll("body *")]
          .filter((one) => one.checkVisibility() && right(one) > innerWidth + 1)
          .map((one) => one.tagName + "." + one.className).slice(0, 8)
    """)
    assert browser.run("return document.documentElement.scrollWidth") <= width, wide
    cut = "return [...document.querySelectorAll('.arms th')].some((one) => one.scrollWidth > {})"
    assert not browser.run(cut.format("one.clientWidth + 1"))


def test_findings_are_chosen_and_sorted_by_who_was_right(
    browser: Any,
    many: Document,
    run: Any,
    drawn: tuple[Chart, ...],
    tmp_path: Path,
    shown: Callable[[], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgeflare.report.html.run_html.charts_of", lambda _: drawn)
    document = deepcopy(many)
    names = ("device-right", "original-right", "both-wrong", None)
    for n, entry in enumerate(document["findings"]):
        entry["harm"] = names[n % 4] if entry["kind"] == "deviation" else None
        entry["within"] = n % 3 > 0
    path = written(document, run, tmp_path / "harm.html")
    browser.open(path)
    by_id = {entry["seed_id"]: entry for entry in document["findings"]}
    order = {"original-right": 1, None: 2, "both-wrong": 3, "device-right": 5}

    def place(seed_id: int) -> int:
        """Return the place of a finding by harm."""
        one = by_id[seed_id]
        return 0 if one["kind"] != "deviation" else order[one["harm"]]

    def leaves_out(seed_id: int) -> bool:
        """Return whether a finding does not count."""
        return place(seed_id) > 0 and not by_id[seed_id]["within"]

    before = shown()
    matters = [(place(i) > 0, leaves_out(i), place(i)) for i in before]
    assert matters == sorted(matters)
    first = Select(browser.driver.find_element(By.NAME, "order")).first_selected_option.text
    assert first == (
        "what matters: failures, then what counts, then most harmful, then strongest first"
    )
    choose(browser, "order", "harm")
    places = [place(i) for i in shown()]
    assert places == sorted(places)
    assert len(set(places)) == 5
    assert shown() != before
    choose(browser, "order", "matters")
    assert shown() == before
    choose(browser, "harm", "original-right")
    assert {by_id[i]["harm"] for i in shown()} == {"original-right"}
    assert browser.run("return location.hash") == "#?harm=original-right"
