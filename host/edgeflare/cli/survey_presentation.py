"""A survey, as `edgeflare report` shows and writes it.

In `survey.csv` what was found of rare events is the last row, where they were looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from edgeflare.cli.console import unless_damaged
from edgeflare.cli.presentation import Reported, page_bytes
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.csv_rows import csv_text
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.statistics.mover import IntervalEstimate
from edgeflare.survey.gates.gate_judgement import DescribedGate
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_words import (
    ending,
    gate_sentence,
    headline,
    next_step,
    rare_sentences,
    release_sentence,
    shown_plan,
)
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.rates.slices import SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey
from edgeflare.survey.survey_derivation import derive_unwritten_survey

_EXTENSIVE = ("repetitions", "thresholds")
"""What is known of rare events in as many figures as no server shows."""

_Cell = str | float | None

RATES = ("deviation", "deviation_strict", "kernel", "kernel_strict", "failed")

SHARES = ("compression", "compression_strict")

RIGHT = ("device_accuracy", "harmed", "helped")
"""Shares of the labelled items, which have no answers of their own beside them."""

INTERVAL = ("", "_low", "_high")

RARE = ("ceiling", "unseen_share")
"""Columns that only rare events have."""

ALONE = ("_alone", "_alone_low", "_alone_high")
"""Suffixes of the columns of a pooled rate for what the answers to its own items say."""

SLICE = ("name", "condition", "severity", "label", "group", "device", "items", "asked")
"""What a slice says of itself."""

COLUMNS = (
    "table", "name", "condition", "severity", "label", "class", "group", "device", "items", "asked",
    "confidence",
    *(f"{rate}{end}" for rate in RATES for end in (*INTERVAL, "_seen", *ALONE)),
    *SHARES,
    "labelled", "original_accuracy", "twin_accuracy",
    *(f"{name}{end}" for name in (*RIGHT, "accuracy_drop") for end in INTERVAL),
    "original_truth_distance", "twin_truth_distance",
    *(f"device_truth_distance{end}" for end in INTERVAL),
    "twin_distance",
    *(f"device_distance{end}" for end in INTERVAL),
    *RARE,
)  # fmt: skip
"""The names of the columns; a cell is empty where the figure is null in the document."""


def reported_survey(directory: RunDirectory) -> Reported:
    """Read a survey, or derive what one says that was cut off.

    Raises:
        UserError: it was cut off before there was anything to say.

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
            "--csv": ("survey.csv", lambda: survey_csv(document).encode()),
            "--summary": ("summary.md", lambda: markdown_page(survey_page(document)).encode()),
        },
        "a survey",
        lambda: survey_suite(document),
    )


def _examples(document: SurveyDocument, directory: RunDirectory) -> str:
    """Draw the deviations of the worst conditions; nothing where the run's document is damaged."""
    from edgeflare.survey.presentation.worst_conditions import (  # noqa: PLC0415 - needs an extra
        worst_conditions_html,
    )

    run = unless_damaged(lambda: load_document(directory))
    return "" if run is None else worst_conditions_html(document, run, directory)


def survey_suite(document: SurveyDocument) -> Suite:
    """Return a survey as cases.

    A gate that is not held fails, and so does one that is undecided, as they do for the exit code.
    A condition fails where a gate about it, or about a set that it is of, is not held or undecided;
    without gates all cases pass, since nothing says what a rate may be. The rates are
    properties, and so is what was found of rare events.

    Args:
        document: as `read_survey` returns it.

    """
    by_condition = [document.unchanged, *document.by_condition.slices]
    missed = {
        name: gate
        for gate in document.gates
        for name in gate.conditions or ()
        if gate.state != "pass"
    }
    return Suite(
        command="survey",
        name=document.pair.name,
        known={
            "edgeflare": document.edgeflare,
            "survey": headline(document),
            "sentence": release_sentence(document),
            "ended": ending(document),
            "rate": {str(part.condition): interval(part.rate) for part in by_condition},
            "rare events": _rare(document),
            "pair": document.pair,
            "plan": shown_plan(document),
            **{f"device {device.name}": device.provenance for device in document.devices},
        },
        cases=[
            *(_case(document, f"gate {gate.name}", gate) for gate in document.gates),
            *(
                _case(document, f"condition {part.condition}", missed.get(part.condition or ""))
                for part in by_condition
            ),
        ],
        seconds=document.seconds,
    )


def _rare(document: SurveyDocument) -> dict[str, Any]:
    """Return what was found of rare events, in words and figures; nothing without them."""
    rare = document.rare
    if rare is None:
        return {}
    figures = {
        key: value for key, value in msgspec.structs.asdict(rare).items() if key not in _EXTENSIVE
    }
    return {"found": " ".join(rare_sentences(document)), **figures}


def _case(document: SurveyDocument, name: str, gate: DescribedGate | None) -> JUnitCase:
    """Return a case, which fails where its gate is not held; None for no gate."""
    if gate is None or gate.state == "pass":
        return JUnitCase(name=name)
    message = f"gate {gate_sentence(gate)}{next_step(document, gate)}"
    kind = "gate" if gate.state == "fail" else "undecided"
    return JUnitCase(name=name, failure=JUnitFailure(message, kind, message))


def survey_csv(document: SurveyDocument) -> str:
    """Return the rates of a survey as comma-separated values with a header (RFC 4180)."""
    rows = _rows(document)
    return csv_text(COLUMNS, ({key: _cell(text) for key, text in row.items()} for row in rows))


def _rows(document: SurveyDocument) -> Iterator[dict[str, _Cell]]:
    yield _row(document, "overall", document.overall, document.confidence)
    yield _row(document, "unchanged", document.unchanged, document.confidence)
    for name, table in document.tables.items():
        for slice_ in table.slices:
            yield _row(document, name, slice_, table.confidence)
    if (rare := document.rare) is not None:
        yield {
            "table": "rare",
            "name": "rare events",
            "asked": rare.device_queries,
            "confidence": document.confidence,
            **_interval("deviation" if document.has_original else "kernel", rare),
            **{key: getattr(rare, key) for key in RARE},
        }


def _row(
    document: SurveyDocument, table: str, slice_: SurveySlice, confidence: float
) -> dict[str, _Cell]:
    row: dict[str, _Cell] = {
        "table": table,
        **{key: getattr(slice_, key) for key in SLICE},
        "confidence": confidence,
    }
    if slice_.label is not None:
        row["class"] = class_name(document.classes, slice_.label)
    for key in RATES:
        if (rate := getattr(slice_, key)) is not None:
            row |= _interval(key, rate) | {f"{key}_seen": rate.seen}
            row |= _interval(f"{key}_alone", rate.alone)
    for key in SHARES:
        if (share := getattr(slice_, key)) is not None:
            row[key] = share.share
    if (accuracy := slice_.accuracy) is not None:
        row |= {"labelled": accuracy.twin.items, "twin_accuracy": accuracy.twin.share}
        if accuracy.original is not None:
            row["original_accuracy"] = accuracy.original.share
        row |= _interval("device_accuracy", accuracy.device)
        row |= _interval("accuracy_drop", accuracy.drop)
        row |= _interval("harmed", accuracy.harmed)
        row |= _interval("helped", accuracy.helped)
        if (far := accuracy.distance) is not None:
            row |= {"original_truth_distance": far.original, "twin_truth_distance": far.twin}
            row |= _interval("device_truth_distance", far.device)
    if (distance := slice_.distance) is not None:
        row |= {"twin_distance": distance.twin} | _interval("device_distance", distance.device)
    return row


def _interval(key: str, estimate: IntervalEstimate | None) -> dict[str, _Cell]:
    if estimate is None:
        return {}
    figures = (estimate.value, estimate.low, estimate.high)
    return {f"{key}{end}": figure for end, figure in zip(INTERVAL, figures, strict=True)}


def _cell(value: _Cell) -> _Cell:
    """Return a value as a cell has it: whole numbers without a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
