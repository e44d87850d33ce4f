"""What a survey says of rare events in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from edgeflare.report.input_words import input_words
from edgeflare.survey.rates.rate_words import counted, interval, percent
from edgeflare.survey.record.survey_document import RareEstimate, SurveyDocument

NOT_RARE: Final = 1e-3
"""A rate above which events are seen often enough by a survey alone."""


def rare_sentences(document: SurveyDocument) -> tuple[str, ...]:
    """Return what was found of rare events, in sentences; none where they were not looked for.

    Args:
        document: of a survey.

    """
    rare = document.rare
    if rare is not None:
        return (_rate(document, rare), _ceiling(rare), _cost(rare), *_not_rare(rare))
    if document.plan.rare_queries is None:
        return ()
    return ("They were asked for and are not estimated yet: the same command with --resume does.",)


def rare_release(document: SurveyDocument) -> str:
    """Return what release notes can say of rare events, where a survey saw none of them.

    It is empty where they were not estimated.

    Args:
        document: of a survey.

    """
    rare = document.rare
    if rare is None:
        return ""
    at = "at severities between 1 and 5"
    if rare.estimate == 0.0:
        ceiling = percent(rare.ceiling)
        return f"Looked for as rare events {at}, none were found, with a ceiling of {ceiling}."
    many = input_words(document.pair).many
    return (
        f"Looked for as rare events {at}, such decisions are those on {interval(rare)} of {many}."
    )


def _rate(document: SurveyDocument, rare: RareEstimate) -> str:
    many = input_words(document.pair).many
    drawn = "With input, condition and severity drawn at random"
    whose = (
        "the device deviates"
        if document.has_original
        else "the device decides otherwise than its twin"
    )
    if rare.estimate == 0.0:
        return (
            f"{drawn}, the host foretold no deviation and the device showed none, which does not"
            " say that there is none."
        )
    return (
        f"{drawn}, {whose} on {interval(rare)} of {many}. The interval is that of"
        f" {len(rare.repetitions)} repetitions, and takes for granted that nothing happens where"
        " nothing was seen."
    )


def _ceiling(rare: RareEstimate) -> str:
    return (
        f"The ceiling, which does not take that for granted, is {percent(rare.ceiling)};"
        f" {100 * rare.unseen_share:.0f} % of it comes from where nothing was seen."
    )


def _not_rare(rare: RareEstimate) -> Iterator[str]:
    """Yield that a rate was not worth it, where it is so."""
    if rare.estimate > NOT_RARE:
        yield (
            f"Above {percent(NOT_RARE)} nothing is rare: the survey's own rate, which took no such"
            " queries, says as much."
        )


def _cost(rare: RareEstimate) -> str:
    return (
        f"That took {counted(rare.device_queries, 'device query', 'device queries')} more, and"
        f" {counted(rare.host_queries, 'query', 'queries')} on the host."
    )
