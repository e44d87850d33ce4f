"""A run directory that has to be that of a survey."""

from __future__ import annotations

from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.run.journal import RunJournal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.record.survey_plan import STRATEGY


def require_survey(path: Path, option: str) -> None:
    """Refuse a run that is no survey.

    Args:
        path: the run directory.
        option: with which the user named it.

    Raises:
        UserError: there is no run, or its journal is damaged, or it is a search or a replay.

    """
    if not path.exists():
        raise UserError(f"there is no run directory {path}: check {option}")
    with RunJournal.read(RunDirectory(path).journal) as journal:
        begun = journal.about()
        if SURVEY_KEY in begun or begun.get("plan", {}).get("strategy") == STRATEGY:
            return
    what = "a replay" if "replay" in begun else "a search"
    raise UserError(
        f"{path} is no survey, but {what}: name a run of `edgeflare survey` with {option}"
    )
