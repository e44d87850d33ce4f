"""A page in each of its forms: all of it is shown to who has room, and no text commands a form."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.console import Console

from edgeflare.pages.html_page import html_page
from edgeflare.pages.markdown import markdown_page, markdown_section
from edgeflare.pages.page import (
    Block,
    Bullets,
    Card,
    Cards,
    CheckLine,
    Facts,
    Illustration,
    KeyFigures,
    Page,
    Section,
    Sentences,
    Table,
    TableCell,
)
from edgeflare.pages.terminal import print_blocks, print_page, print_section
from parsed_pages import asks_for_nothing, well_formed

HOSTILE = "<b>&\x1b[31m|\N{RIGHT-TO-LEFT OVERRIDE}"


def page_of(*blocks: Block, brief: bool = True, checks: tuple[CheckLine, ...] = ()) -> Page:
    return Page(
        kind="EdgeFlare trial",
        name="a pair",
        mark="attention",
        lead="it differs",
        words=["Read this."],
        checks=checks,
        warnings=["take care"],
        sections=[Section(id="part", title="The part", words="Why.", blocks=blocks, brief=brief)],
        source="trial.json",
        version="1",
    )


def printed(page: Page, width: int = 80) -> str:
    written = io.StringIO()
    print_page(Console(file=written, width=width), page, "runs/one")
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def browsed(page: Page) -> str:
    parsed = well_formed(html_page(page))
    asks_for_nothing(parsed)
    return parsed.text


Form = Callable[[Page], str]

FORMS = pytest.mark.parametrize("form", [printed, markdown_page, browsed])

BLOCKS = {
    "lines": (Sentences(["One.", "Two."]), ("One.", "Two.")),
    "bullets": (Bullets(["One.", "Two."]), ("One.", "Two.")),
    "facts": (Facts("", [("size", "12")]), ("size", "12")),
    "key figures": (KeyFigures([("findings", "12 of 50")]), ("findings", "12", "of 50")),
    "table": (
        Table(title="Of rates", header=("", "rate"), rows=[("fog", "7 (5–9)")], note="Together."),
        ("Of rates", "rate", "fog", "7", "(5–9)", "Together."),
    ),
    "cell": (
        Table(title="", header=("", "x"), rows=[("fog", TableCell("7", below="5–9"))]),
        ("5–9",),
    ),
    "cards": (
        Cards([Card(id="a", number="3", title="A fault", facts=[("worst", "2 steps")])]),
        ("3", "A fault", "worst", "2 steps"),
    ),
}


@FORMS
@pytest.mark.parametrize(("block", "said"), BLOCKS.values(), ids=BLOCKS)
def test_each_form_shows_each_block(form: Form, block: Block, said: tuple[str, ...]) -> None:
    shown = form(page_of(block, checks=(CheckLine("fail", "rate<1", "is not held"),)))
    for text in (*said, "it differs", "Read this.", "take care", "The part", "rate", "is not held"):
        assert text in shown


@FORMS
def test_a_section_without_anything_is_left_out(form: Form) -> None:
    empty = (Sentences([]), Facts("", []), Table(title="T", header=("",), rows=[]), Cards([]))
    page = page_of(*empty, Illustration(lambda: ""))
    page = replace(page, sections=[*page.sections, *page_of(Sentences(["One."])).sections])
    assert form(page).count("The part") == form(page_of(Sentences(["One."]))).count("The part")


@pytest.mark.parametrize("form", [printed, markdown_page])
def test_a_brief_form_draws_nothing_and_leaves_out_what_is_not_brief(form: Form) -> None:
    def draw() -> str:
        raise AssertionError

    assert "The part" in form(page_of(Sentences(["One."]), Illustration(draw)))
    assert "The part" not in form(page_of(Sentences(["One."]), brief=False))


@pytest.mark.parametrize("form", [printed, markdown_page])
def test_a_brief_form_shows_what_stands_for_an_illustration(form: Form) -> None:
    gallery = Illustration(lambda: "<p>drawn</p>", instead=Sentences(["Listed."]))
    assert "Listed." in form(page_of(gallery))
    assert "Listed." not in browsed(page_of(gallery))
    assert "drawn" in browsed(page_of(gallery))


def test_a_long_cell_is_cut_where_there_is_little_room() -> None:
    table = Table(title="", header=("", "text"), rows=[("a", "word " * 100)])
    forms = (printed, markdown_page, browsed)
    assert [form(page_of(table)).count("word") for form in forms] == [16, 80, 100]
    table = replace(table, brief=20)  # a line of a terminal, which the other forms do not have
    assert [form(page_of(table)).count("word") for form in forms] == [4, 80, 100]
    assert printed(page_of(table), width=120).count("word") == 12


def test_cells_stand_below_their_headings() -> None:
    cells: list[str | TableCell] = [TableCell("on", "a device"), "7", TableCell("8", below="5–9")]
    table = Table(title="", header=("", "on", "n", "m"), rows=[("a", *cells)], numbers_from=2)
    page = well_formed(html_page(page_of(table)))
    columns = zip(page.all("th")[:3], page.all("td")[1:], strict=True)
    right = [["n" in str(one.get("class", "")).split() for one in column] for column in columns]
    assert right == [[False, False], [True, True], [True, True]]


def test_a_browser_shows_what_is_drawn_once() -> None:
    drawn: list[str] = []

    def draw() -> str:
        drawn.append("<svg></svg>")
        return drawn[0]

    assert html_page(page_of(Illustration(draw), brief=False)).count("<svg></svg>") == 1
    assert len(drawn) == 1


def test_rows_are_cut_where_there_is_little_room_but_for_those_that_are_kept() -> None:
    rows = [(f"row{n}", str(n)) for n in range(9)]
    table = Table(title="T", header=("", "n"), rows=rows, most=3, order="worst", kept=("row7",))
    said = printed(page_of(table))
    assert "T, the worst 3 of 9 and 1 more" in said
    assert [name for name, _ in rows if name in said] == ["row0", "row1", "row2", "row7"]
    assert "row8" in browsed(page_of(table))
    one_more = Table(title="T", header=("", "n"), rows=rows[:4], most=3)
    assert "row3" in printed(page_of(one_more))
    assert "T, the worst 3 of 1,200 and 1 more" in printed(page_of(replace(table, count=1200)))


def test_columns_that_are_missed_least_go_first_on_a_narrow_terminal() -> None:
    header = ("", "deviates", "asked", "by kernels", "items")
    rows = [("a condition", "12.5 % (10.1–14.9)", "1,200", "3.1 % (2.0–4.0)", "5,000")]
    table = Table(title="T", header=header, rows=rows, missed_least=("items", "asked"))
    assert "items" in printed(page_of(table), 120)
    narrow = printed(page_of(table), 36)
    shown, _, left_out = narrow.partition("no room for: ")
    assert ("items" in shown, "asked" in shown, "kernels" in shown) == (False, False, True)
    assert left_out.startswith("items, asked\n")


def test_long_cells_are_cut_where_there_is_little_room_unless_they_are_whole() -> None:
    words = "word " * 200
    table = Table(title="T", header=("", "what"), rows=[("a", f"{words}end")])
    for form in (printed, markdown_page):
        assert "end" not in form(page_of(table))
        assert "end" in form(page_of(replace(table, whole=True)))
    assert "end" in browsed(page_of(table))


def test_a_section_or_blocks_stand_alone() -> None:
    (section,) = page_of(Sentences(["One."]), Sentences([])).sections
    written = io.StringIO()
    print_section(Console(file=written), section)
    print_blocks(Console(file=written), *section.blocks)
    assert written.getvalue() == "The part\nOne.\nOne.\n"
    assert markdown_section(section) == "## The part\n\nOne.\n"


@pytest.mark.parametrize("columns", range(1, 12))
def test_a_figure_for_which_there_is_no_room_is_left_out_by_name_and_not_cut(columns: int) -> None:
    header = ("", *(f"<{n}>" for n in range(columns)))
    row = ("a name", *(f"{n}00.{n}25" for n in range(columns)))
    said = printed(page_of(Table(title="", header=header, rows=[row])), 60)
    shown, _, left_out = said.partition("no room for: ")
    for name, figure in zip(header[1:], row[1:], strict=True):
        assert (figure in shown) != (name in left_out)


@pytest.mark.parametrize("width", range(30, 90, 7))
def test_no_number_is_broken_and_no_short_word_where_there_is_room(width: int) -> None:
    header = ("set", "cause", "before", "after", "p")
    rows = [("tight", "compression", "1,234 → 567", "0.12345", f"1e-{n}") for n in range(3)]
    said = printed(page_of(Table(title="T", header=header, rows=rows, numbers_from=2)), width)
    shown, _, left_out = said.partition("no room for: ")
    for name, figure in zip(header[2:], rows[0][2:], strict=True):
        assert (figure in shown) != (name in left_out)
    assert "compression" in shown


@pytest.mark.parametrize("width", range(78, 90))
def test_no_column_of_words_is_cut_off_where_all_have_room(width: int) -> None:
    kernels = ("xnnpack", "builtin", "reference", "compiled-cpu", "gpu", "micro")
    header = ("operator", *kernels, "alone")
    worst = [*["65,535 steps"] * 4, "refused", "65,535 steps"]
    rows = [("TANH int16x8", *worst, ""), ("TANH int8", *"····", "crash", "·", "gpu")]
    shown = printed(page_of(Table.of_words(header, rows)), width)
    words = {word for row in (header, *rows) for cell in row for word in cell.split()}
    assert words <= set(shown.split())
