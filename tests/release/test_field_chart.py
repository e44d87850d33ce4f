"""The chart of the conditions of the field."""

from __future__ import annotations

import re

from checked_figures import cell, field_figures
from edgeflare.release.field_chart import field_chart
from parsed_pages import well_formed


def test_the_conditions_that_lose_most_are_drawn_and_all_are_listed() -> None:
    names = [f"condition-{at}" for at in range(9)]
    cells = [cell(name, at % 3 + 1, 30 - at) for at, name in enumerate(names)]
    drawn = field_chart(field_figures(*cells, clean=3), 0.05)
    assert drawn is not None
    well_formed(drawn.svg)
    assert re.findall(r"condition-\d", drawn.svg.partition("</svg")[0].partition(">")[2]) == [
        *names[:8]
    ]
    assert "Most under condition-0 at severity 1: 20.00% (" in drawn.words
    assert "of 150 inputs, and 2.00% without a condition" in drawn.words
    assert "The 8 of 9 that lose most." in drawn.words
    assert [row[0] for row in drawn.rows] == names
    assert ("limit" in drawn.svg, field_chart(field_figures(), 0.05)) == (True, None)


def test_names_of_other_packages_command_no_page() -> None:
    drawn = field_chart(field_figures(cell("<b>$x$</b>", 1, 9)), None)
    assert drawn is not None
    assert "<b>" not in drawn.svg
    assert "limit" not in drawn.svg
