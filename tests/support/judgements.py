"""Judgements of candidates of a repair, made up of counts."""

from __future__ import annotations

from edgeflare.repair.judging.judged_inputs import SAMPLED, SEEDS, TIGHT, WIDE
from edgeflare.repair.judging.judgement import Change, Figures, Judgement


def figures(deviating: int) -> Figures:
    return Figures(1000, deviating, deviating // 2, 0, 0, None, 0)


def judgement(mended: int, broken: int, before: int = 100) -> Judgement:
    names = (SEEDS, TIGHT, WIDE, SAMPLED)
    after = before - mended + broken
    return Judgement(
        before={name: figures(before) for name in names},
        after={name: figures(after) for name in names},
        changes={name: Change(mended, broken, 1.0) for name in names},
        accuracy={},
    )
