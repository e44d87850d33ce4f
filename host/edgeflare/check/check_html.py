"""A check as an HTML page, with what only a browser shows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from edgeflare.check.check_document import CheckDocument
from edgeflare.check.check_page import check_page
from edgeflare.check.input_cards import looked_at_html
from edgeflare.check.section_evidence import sections_html
from edgeflare.diagnose.layers.layers_document import LAYERS, load_layers
from edgeflare.pages.html_page import html_page

if TYPE_CHECKING:
    from edgeflare.pages.chart import Chart


def check_html(document: CheckDocument, folder: Path) -> str:
    """Return a check as an HTML page; without the extra `report` it has no charts.

    Args:
        document: document of the check.
        folder: folder of the check, as the user knows it, with its inputs and runs.

    Raises:
        UserError: the folder names a file outside of it, or its layer table is damaged.

    """

    def parts() -> dict[str, str]:
        known = (one for one in page.sections if one.id != "sections")
        return {one.id: one.title for one in known if any(one.blocks)}

    drawn = {
        "changed": lambda: looked_at_html(document, folder),
        "sections": lambda: sections_html(document, folder, parts()),
        "field": lambda: _charts(lambda: _of_conditions(document)),
        "layers": lambda: _charts(lambda: _of_layers(folder)),
    }
    page = check_page(document, drawn)
    return html_page(page)


def _charts(drawn: Callable[[], Iterator[Chart]]) -> str:
    """Return charts as HTML; nothing where matplotlib is not installed."""
    try:
        from edgeflare.pages.chart import charts_html  # noqa: PLC0415 - needs an extra
    except ImportError:
        return ""
    return charts_html(tuple(drawn()))


def _of_conditions(document: CheckDocument) -> Iterator[Chart]:
    from edgeflare.check.field_chart import field_chart  # noqa: PLC0415 - needs an extra

    known = document.figures.field
    chart = None if known is None else field_chart(known, document.asked.gates.get("field-loss"))
    if chart is not None:
        yield chart


def _of_layers(folder: Path) -> Iterator[Chart]:
    from edgeflare.diagnose.layers.layer_charts import layer_charts  # noqa: PLC0415 - as above

    table = folder / "layers" / LAYERS
    if table.is_file():
        yield from layer_charts(load_layers(table))
