"""Judged drafts as plain JSON values, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.drafts.draft_json import draft_to_json
from edgeflare.conform.rounds.judged_draft import JudgedDraft
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement


def drafts_digest(drafts: Sequence[Draft]) -> str:
    """Return a digest of drafts, by which a resumed run knows that it draws the same again."""
    text = json.dumps([draft_to_json(draft) for draft in drafts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def judged_to_json(judged: Sequence[JudgedDraft]) -> list[Any]:
    """Return what was said of drafts, without the drafts, which are drawn again."""
    return [
        {"nodes": [_judgement(one) for one in draft.nodes], "whole": _judgement(draft.whole)}
        for draft in judged
    ]


def judged_from_json(
    drafts: Sequence[Draft], values: Sequence[Mapping[str, Any]]
) -> list[JudgedDraft]:
    """Return the drafts with what `judged_to_json` wrote of them."""
    return [
        JudgedDraft(draft, tuple(map(_read, one["nodes"])), _read(one["whole"]))
        for draft, one in zip(drafts, values, strict=True)
    ]


def _judgement(one: KernelJudgement | None) -> list[Any] | None:
    if one is None:
        return None
    # Most models are right, and there are many.
    if one == KernelJudgement("right", telling=one.telling):
        return [one.telling]
    said = [one.verdict, one.symptom, one.counted, one.worst, one.unit, list(one.wrong), one.detail]
    return [*said, one.telling]


def _read(values: Sequence[Any] | None) -> KernelJudgement | None:
    if values is None:
        return None
    if len(values) == 1:
        return KernelJudgement("right", telling=values[0])
    verdict, symptom, counted, worst, unit, wrong, detail, telling = values
    return KernelJudgement(verdict, symptom, counted, worst, unit, tuple(wrong), detail, telling)
