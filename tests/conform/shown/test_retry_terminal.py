"""Tests of edgeflare.conform.shown.retry_terminal."""

from __future__ import annotations

import io

from rich.console import Console

from conformed_runs import finding_entry
from edgeflare.conform.shown.retry_terminal import RetryLine, print_retry


def test_what_fails_comes_first() -> None:
    written = io.StringIO()
    lines = [
        RetryLine(finding_entry(1), "mended", ""),
        RetryLine(finding_entry(2, known="a vendor's"), "still", "14 of 68 values are wrong"),
        RetryLine(finding_entry(3), "refused", "unknown \x1b[2J version"),
        RetryLine(finding_entry(4), "otherwise", "now crash, crash: SIGSEGV"),
    ]
    print_retry(Console(file=written, width=80), "board", lines)
    said = [line.strip() for line in written.getvalue().splitlines()]
    assert said[0] == "board: findings that fail: 2 of 4, mended: 1, refused: 1"
    titles = ["Still fails", "Fails in another way", "The device refuses the model", "Mended"]
    places = [said.index(title) for title in titles]
    assert places == sorted(places)
    assert "2 ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7" in said
    assert "known: a vendor's" in said
    assert "now crash, crash: SIGSEGV" in said
    assert "\x1b" not in written.getvalue()
