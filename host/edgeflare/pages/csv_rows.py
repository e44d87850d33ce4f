"""Rows as comma-separated values, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from edgeflare.untrusted_text import for_csv


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows with a header (RFC 4180), in which no text is a formula.

    Args:
        columns: their names, in their order.
        rows: the cells by column; one that is None, or is not there, is empty;
            others are left out.

    """
    text = io.StringIO()
    table = csv.DictWriter(text, columns, extrasaction="ignore")
    table.writeheader()
    table.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return for_csv(value) if isinstance(value, str) else value
