"""Cases as annotations: lines that GitHub shows beside the job that prints them.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from edgeflare.pages.facts import count_of
from edgeflare.pages.junit import Suite
from edgeflare.untrusted_text import for_terminal

_MOST: Final = 10
"""Annotations of one kind that GitHub shows of a step, at most."""


def job_annotations(suite: Suite) -> Iterator[str]:
    """Yield a line for each case that failed, then one for each that was skipped, without its end.

    Where there are more than ten of a kind, the last one says how many more there are.

    Args:
        suite: the cases.

    """
    title = " ".join(filter(None, ("edgeflare", suite.command, suite.name)))
    failed = [
        (junit_case.name, junit_case.failure.message)
        for junit_case in suite.cases
        if junit_case.failure is not None
    ]
    skipped = [
        (junit_case.name, junit_case.skipped) for junit_case in suite.cases if junit_case.skipped
    ]
    for kind, told in (("error", failed), ("notice", skipped)):
        shown = told if len(told) <= _MOST else told[: _MOST - 1]
        for name, message in shown:
            yield f"::{kind} title={_property(f'{title}: {name}')}::{_text(message)}"
        if more := len(told) - len(shown):
            yield f"::{kind} title={_property(title)}::{count_of(more, 'more case')} like these"


def _text(text: str) -> str:
    plain = for_terminal(text)
    return plain.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
