"""Charts in a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgeflare.pages.chart import Chart, charts_html
from edgeflare.pages.html_page import html_page
from edgeflare.pages.page import Illustration, Page, Section


@pytest.mark.browser
def test_a_wide_table_is_scrolled_within_its_chart(browser: Any, tmp_path: Path) -> None:
    columns = [f"figure {at}" for at in range(9)]
    chart = Chart("Loss", "<svg></svg>", "It is lost.", ("name", *columns), (("fog", *columns),))
    shown = Section(id="loss", title="Loss", blocks=[Illustration(lambda: charts_html([chart]))])
    page = Page(
        kind="EdgeFlare trial", name="a pair", mark=None, lead="it differs", sections=[shown],
        source="trial.json", version="1",
    )  # fmt: skip
    file = tmp_path / "page.html"
    file.write_text(html_page(page), encoding="utf-8")
    browser.open(file, width=380)
    browser.run("document.querySelector('details').open = true")
    assert browser.run("return document.documentElement.scrollWidth") <= 380
