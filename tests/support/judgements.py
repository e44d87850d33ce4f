"""Judgements of candidates of a repair, made up of counts."""

from __future__ import annotations

from edgeflare.repair.judging.judgement import Change, Figures, Judgement, SetJudgement


def figures(deviating: int) -> Figures:
    return Figures(1000, deviating, deviating // 2, 0, 0, None, 0)


def one_set(
    before: Figures,
    after: Figures,
    mended: int = 0,
    broken: int = 0,
    p: float = 1.0,
    accuracy: Change | None = None,
) -> SetJudgement:
    return SetJudgement(mended, broken, p, before=before, after=after, accuracy=accuracy)


def of_all(one: SetJudgement) -> Judgement:
    """The same on each set."""
    return Judgement(seeds=one, tight=one, wide=one, sampled=one)


def judgement(mended: int, broken: int, before: int = 100) -> Judgement:
    after = before - mended + broken
    return of_all(one_set(figures(before), figures(after), mended, broken))
