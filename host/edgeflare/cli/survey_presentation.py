"""A survey, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from functools import partial

import msgspec

from edgeflare.cli.console import unless_damaged
from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.pages.junit import junit_xml
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.survey.presentation.survey_csv import survey_csv
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_suite import survey_suite
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey
from edgeflare.survey.survey_derivation import derive_unwritten_survey


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
    where = str(directory.path)
    examples = partial(_examples, document, directory)
    return Reported(
        lambda: msgspec.to_builtins(document),
        lambda console: print_page(console, survey_page(document, where=where), where),
        {
            "--html": ("survey.html", lambda: page_bytes(survey_page(document, examples))),
            "--junit": ("junit.xml", lambda: junit_xml(survey_suite(document))),
            "--csv": ("survey.csv", lambda: survey_csv(document).encode()),
            "--summary": ("summary.md", lambda: markdown_page(survey_page(document)).encode()),
        },
        "a survey",
    )


def _examples(document: SurveyDocument, directory: RunDirectory) -> str:
    """Draw the deviations of the worst conditions; nothing where the run's document is damaged."""
    from edgeflare.survey.presentation.worst_conditions import (  # noqa: PLC0415 - needs an extra
        worst_conditions_html,
    )

    run = unless_damaged(lambda: load_document(directory))
    return "" if run is None else worst_conditions_html(document, run, directory)
