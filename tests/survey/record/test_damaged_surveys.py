"""Surveys with a value that does not belong in its place: refused in a line, or shown."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from constructed_surveys import (
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_facts,
    drawn_sample,
)
from damaged_documents import VALUES, Place, damage, places
from edgeflare.errors import UserError
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.record.survey_file import read_survey
from edgeflare.survey.shown.page.survey_page import render_survey
from edgeflare.survey.shown.survey_csv import survey_csv
from edgeflare.survey.shown.survey_junit import survey_junit
from edgeflare.survey.shown.survey_summary import survey_summary
from edgeflare.survey.shown.survey_terminal import print_survey
from edgeflare.survey.survey_document import survey_document
from parsed_pages import asks_for_nothing, well_formed


@cache
def document() -> dict[str, Any]:
    """A survey with all parts that one can have."""
    facts = constructed_facts(inputs=40)
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(inputs=40, rng_seed=1))
    return survey_document(as_asked(facts, sample), sample, about_survey(), baseline)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    place: Place = draw(st.sampled_from(list(places(document()))))
    how = draw(st.sampled_from(("put", "put", "take", "more")))
    return damage(document(), place, how, draw(st.sampled_from(VALUES)))


@given(changed=damaged())
def test_damage_is_refused_in_a_line_or_shown(changed: Any, tmp_path_factory: Any) -> None:
    folder: Path = tmp_path_factory.mktemp("damaged")
    (folder / "survey.json").write_text(json.dumps(changed))
    directory = RunDirectory(folder)
    read, refusal = None, ""
    try:
        read = read_survey(directory)
    except UserError as error:
        refusal = str(error)
    if read is None:
        assert "survey.json" in refusal
        assert "\n" not in refusal
        return
    print_survey(Console(file=io.StringIO()), read, "runs/survey")
    survey_summary(read).encode()
    survey_csv(read).encode()
    survey_junit(read)
    asks_for_nothing(well_formed(render_survey(read, directory, None)))
