"""Drafts as plain JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.specification.settings import Configuration, Setting


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


def draft_from_json(nodes: Sequence[Mapping[str, Any]]) -> Draft:
    """Return the draft that `draft_to_json` wrote."""
    return Draft(
        tuple(
            DraftNode(
                node["operator"],
                node["type"],
                settings_from_json(node["settings"]),
                node["constants"],
                tuple(node["sources"]),
                node["given"],
            )
            for node in nodes
        )
    )


def settings_from_json(settings: Mapping[str, Any]) -> Configuration:
    """Return a configuration; JSON has lists where it has shapes."""
    return {name: _setting(value) for name, value in settings.items()}


def _setting(value: Any) -> Setting:
    return tuple(value) if isinstance(value, list) else value
