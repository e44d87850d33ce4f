"""A repair as Markdown for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeflare.repair.page.judged_parts import judged_table
from edgeflare.repair.repair_cost import latency_change
from edgeflare.repair.repair_terminal import offer_line
from edgeflare.report.markdown_summary import markdown_table
from edgeflare.untrusted_text import for_markdown


def repair_summary(document: Mapping[str, Any]) -> str:
    """Return a repair as Markdown (GitHub's flavour).

    Args:
        document: as `read_repair` returns it.

    """
    repaired = document["repaired"]
    mark = "✅ A repaired model is written" if document["written"] else "⚪ No model is written"
    parts = [f"## EdgeFlare repair: {for_markdown(document['pair']['name'])}"]
    parts.append(f"{mark}: {for_markdown(document['why'])}.")
    if repaired is not None:
        more = repaired["bytes_after"] - repaired["bytes_before"]
        parts.append(f"It has {more:+,} bytes, and takes {for_markdown(latency_change(repaired))}.")
    offer = offer_line(document)
    if offer is not None:
        parts.append(f"{for_markdown(offer)}.")
    if document["judged"] is not None:
        table = judged_table(document)
        parts += [f"### {for_markdown(table.title)}", markdown_table(table.header, table.rows)]
    return "\n\n".join(parts) + "\n"
