"""A survey of images with its run: real files of inputs, made-up figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from constructed_surveys import about_survey, as_asked, constructed_facts, drawn_sample
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import to_json
from edgeflare.survey.record.survey_document import SurveyFinding, survey_bytes
from edgeflare.survey.survey_derivation import survey_document
from stored_runs import stored_run

FINDINGS = tuple(
    SurveyFinding(seed_id=at, condition=condition, severity=severity, strength=strength)
    for at, (condition, severity, strength) in enumerate(
        [("fog", 5, 0.9), ("fog", 1, 0.5), ("dark", 3, 0.4), ("unchanged", 0, 0.3)]
    )
)
"""Three changed inputs and a seed that deviates itself."""


def surveyed_run(folder: Path, **changes: Any) -> RunDirectory:
    """Write the run directory of a survey, and return it.

    Args:
        folder: of the run.
        changes: to what is said of the survey, as `about_survey` takes them.

    """
    rng = np.random.default_rng(3)
    images = [np.asarray(rng.integers(0, 256, (24, 24, 3)), np.uint8) for _ in range(4)]
    found = [(one, np.asarray(255 - one // 2, np.uint8)) for one in images[:3]]
    run, directory = stored_run(
        folder, ImageDomain(), found, images[3:], pair={"name": "sneakers", "domain": "image"}
    )
    directory.document.write_text(json.dumps(to_json(run)))
    facts = constructed_facts(inputs=100)
    sample = drawn_sample(facts, 0.3)
    about = about_survey(findings=FINDINGS, **changes)
    document = survey_document(as_asked(facts, sample), sample, about)
    (folder / "survey.json").write_bytes(survey_bytes(document))
    return directory
