"""The run directory of an earlier survey, read to compare with."""

from __future__ import annotations

from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.run.journal import DamagedJournalError
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.rates.baseline import BaselineSurvey
from edgeflare.survey.record.required_survey import require_survey
from edgeflare.survey.record.survey_file import read_survey
from edgeflare.survey.record.survey_journal import read_checksums, read_facts


def load_baseline(path: Path) -> BaselineSurvey:
    """Return an earlier survey to compare with.

    Raises:
        UserError: there is none, or it is no survey, or it is damaged, or its document and its
            journal are those of two surveys.

    """
    try:
        return _load(path)
    except DamagedJournalError as error:
        raise UserError(
            f"{RunDirectory(path).journal} is damaged ({error.why}): name another run with"
            " --baseline"
        ) from None


def _load(path: Path) -> BaselineSurvey:
    require_survey(path, "--baseline")
    document, facts = read_survey(RunDirectory(path)), read_facts(path)
    cells = document["by_cell"]["slices"]
    both: dict[str, tuple[object, object]] = {
        "inputs": (document["inputs"], facts.inputs),
        "cells": (
            [(one["condition"], one["severity"]) for one in cells],
            [(one.condition, one.severity) for one in facts.cells],
        ),
        "has_original": (document["has_original"], facts.has_original),
        "asked": (document["asked"], int(facts.asked.sum())),
    }
    for what, (said, known) in both.items():
        if said != known:
            raise UserError(
                f"{path} is damaged: its survey.json and its run.db have other {what}: survey it"
                " anew, or name another run with --baseline"
            )
    return BaselineSurvey(str(path), document, facts, read_checksums(path))
