"""A repair as Markdown for the summary of a CI job."""

from __future__ import annotations

from edgeflare.pages.markdown import markdown_table
from edgeflare.repair.page.page_parts import judged_table
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.repair.repair_terminal import offer_line
from edgeflare.untrusted_text import for_markdown


def repair_summary(document: RepairDocument) -> str:
    """Return a repair as Markdown (GitHub's flavour)."""
    repaired = document.repaired
    mark = "✅ A repaired model is written" if document.written else "⚪ No model is written"
    parts = [f"## EdgeFlare repair: {for_markdown(document.pair.name)}"]
    parts.append(f"{mark}: {for_markdown(document.why)}.")
    if repaired is not None:
        more = repaired.bytes_after - repaired.bytes_before
        parts.append(f"It has {more:+,} bytes, and takes {for_markdown(repaired.change)}.")
    offer = offer_line(document)
    if offer is not None:
        parts.append(f"{for_markdown(offer)}.")
    if document.judged is not None:
        table = judged_table(document.chosen, document.judged)
        parts += [f"### {for_markdown(table.title)}", markdown_table(table.header, table.rows)]
    return "\n\n".join(parts) + "\n"
