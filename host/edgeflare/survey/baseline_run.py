"""The run directory of an earlier survey, read to compare with."""

from __future__ import annotations

from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked
from edgeflare.record.journal import DamagedJournalError
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.survey.baseline import BaselineSurvey
from edgeflare.survey.derived_survey import derive_unwritten_survey
from edgeflare.survey.record.required_survey import require_survey
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey
from edgeflare.survey.record.survey_journal import read_checksums, read_facts


def load_baseline(path: Path, copy_of: Path | None = None) -> BaselineSurvey:
    """Return an earlier survey to compare with.

    Of one that was cut off before its document was written, that is derived from its journal.

    Args:
        path: of its run directory.
        copy_of: where the survey lies that this is a copy of; None for no copy.

    Raises:
        UserError: there is none, or it is no survey, or it is damaged, or its host has not answered
            all items, or its document and its journal are those of two surveys.

    """
    try:
        return _load(path, path if copy_of is None else copy_of)
    except DamagedJournalError as error:
        raise UserError(
            f"{RunDirectory(path).journal} is damaged ({error.why}): name another run with"
            " --baseline"
        ) from None


def _load(path: Path, named: Path) -> BaselineSurvey:
    require_survey(path, "--baseline")
    document, facts = _document(RunDirectory(path)), read_facts(path)
    cells = document.by_cell.slices
    both: dict[str, tuple[object, object]] = {
        "inputs": (document.inputs, facts.inputs),
        "cells": (
            [(one.condition, one.severity) for one in cells],
            [(one.condition, one.severity) for one in facts.cells],
        ),
        "has_original": (document.has_original, facts.has_original),
        "asked": (document.asked, int(facts.asked.sum())),
    }
    for what, (said, known) in both.items():
        if said != known:
            raise UserError(
                f"{path} is damaged: its survey.json and its run.db have other {what}: survey it"
                " anew, or name another run with --baseline"
            )
    return BaselineSurvey(str(named), document, facts, read_checksums(path))


def _document(directory: RunDirectory) -> SurveyDocument:
    """Return the document of a survey; what it is compared with itself does not matter."""
    if directory.inside(SURVEY_DOCUMENT).is_file():
        return read_survey(directory)
    if is_locked(directory.path):
        raise UserError(
            f"{directory.path} is a survey that is still running: wait for its end, or name another"
            " run with --baseline"
        )
    return derive_unwritten_survey(directory)
