"""Drafts as plain JSON values."""

from __future__ import annotations

from typing import Any

from edgeflare.conform.drafts.draft import Draft


def draft_to_json(draft: Draft) -> list[dict[str, Any]]:
    """Return a draft as plain JSON values, one object for each operator."""
    return [
        {
            "operator": node.operator,
            "type": node.type,
            "settings": dict(node.configuration),
            "constants": node.constants,
            "sources": list(node.sources),
            "given": node.given,
        }
        for node in draft.nodes
    ]
