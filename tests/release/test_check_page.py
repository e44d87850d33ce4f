"""The page of a check."""

from __future__ import annotations

import io

from msgspec import structs
from rich.console import Console

from checked_figures import changes, decisions, document, figures
from edgeflare.core.query import Arm
from edgeflare.pages.terminal import print_page
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_page import check_page


def printed(found: CheckDocument) -> str:
    said = io.StringIO()
    print_page(Console(file=said, width=120), check_page(found), "runs/check")
    return said.getvalue()


def test_a_limit_that_is_rounded_up_to_an_input_says_so_where_that_decides() -> None:
    one_of_64 = decisions(
        inputs=64,
        labelled=64,
        right={Arm.ORIGINAL: 60, Arm.TWIN: 60, Arm.DEVICE: 59},
        changes=changes(1, harmed=1, inputs=64),
    )
    found = document(figures(decisions=one_of_64))
    assert (
        "Within the limit since that is rounded up to whole inputs: accuracy-drop (1 of 64),"
        " net-harm (1 of 64)."
    ) in " ".join(printed(found).split())
    strict = structs.replace(found, plan=structs.replace(found.plan, strict=True))
    for other in (strict, document(figures())):
        assert "rounded up" not in printed(other)
