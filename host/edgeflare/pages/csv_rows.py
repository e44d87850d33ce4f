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
    for row in rows:
        table.writerow(
            {key: for_csv(cell) if isinstance(cell, str) else cell for key, cell in row.items()}
        )
    return text.getvalue()
