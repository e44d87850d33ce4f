"""A survey, as `edgeflare report` shows and writes it."""

from __future__ import annotations

import msgspec

from edgeflare.cli.console import unless_damaged
from edgeflare.cli.reported import Reported, extra_needed
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.survey.derived_survey import derive_unwritten_survey
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey
from edgeflare.survey.shown.survey_csv import survey_csv
from edgeflare.survey.shown.survey_junit import survey_junit
from edgeflare.survey.shown.survey_summary import survey_summary
from edgeflare.survey.shown.survey_terminal import print_survey


def reported_survey(directory: RunDirectory) -> Reported:
    """Read a survey, or derive what one says that was cut off.

    Raises:
        UserError: its document or its journal cannot be read, or is damaged; or it was cut off
            before there was anything to say.

    """
    if directory.inside(SURVEY_DOCUMENT).is_file():
        document = read_survey(directory)
    else:
        document = derive_unwritten_survey(directory)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_survey(console, document, str(directory.path)),
        {
            "--html": ("survey.html", lambda: _page(document, directory)),
            "--junit": ("junit.xml", lambda: survey_junit(document)),
            "--csv": ("survey.csv", lambda: survey_csv(document).encode()),
            "--summary": ("summary.md", lambda: survey_summary(document).encode()),
        },
        "a survey",
    )


def _page(document: SurveyDocument, directory: RunDirectory) -> bytes:
    with extra_needed():
        from edgeflare.survey.shown.page.survey_page import render_survey  # noqa: PLC0415
    run = unless_damaged(lambda: load_document(directory))
    return render_survey(document, directory, run).encode()
