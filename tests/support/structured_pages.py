"""Runs whose inputs are real files and whose answers are texts, objects or masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from documents import as_json
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument, from_json
from stored_runs import chirp, noisy, stored_run
from structured_views import KINDS, MASKS, OBJECTS, TEXTS, structured_finding

RATE = 8_000

Answers = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The views of trigger and seed."""


def structured_page(
    folder: Path,
    task: str,
    answers: Answers | None = None,
    kinds: Sequence[str] = (),
    **fields: Any,
) -> tuple[RunDocument, RunDirectory]:
    """Return a run with two findings and a seed that deviates itself, and its directory.

    Args:
        folder: the run directory.
        task: of the run, which also says the domain of the inputs.
        answers: to each trigger and each seed; by default those of `structured_views`.
        kinds: of the findings, where they are not all of one kind.
        fields: of the document.

    """
    trigger, seed = answers or default_answers(task)
    domain, inputs = _inputs(task)
    document, directory = stored_run(folder, domain, inputs[:2], [inputs[2][0]], classes=[])
    plain = as_json(document)
    for n, entry in enumerate((*plain["findings"], *plain["deviating_seeds"])):
        kind = kinds[n] if n < len(kinds) else KINDS[task]
        answered = structured_finding(task, answers=[trigger], seed_answers=[seed], kind=kind)
        entry.update(answered)
    plain["pair"]["task"] = task
    plain |= fields
    return from_json(plain), directory


def default_answers(task: str) -> Answers:
    """Return views on which the arms differ, and on which they agree."""
    if task == "transcript":
        words = TEXTS["words"]["original"]
        return TEXTS, {**TEXTS, "words": dict.fromkeys(TEXTS["words"], words)}
    if task == "detection":
        boxes = [{**one, "difference": ""} for one in OBJECTS["boxes"]["original"]]
        return OBJECTS, {**OBJECTS, "boxes": dict.fromkeys(OBJECTS["boxes"], boxes)}
    mask = MASKS["masks"]["original"]
    alike = {"masks": dict.fromkeys(MASKS["masks"], mask), "mean_iou": 1.0, "region": 0}
    return MASKS, {**MASKS, **alike}


def _inputs(task: str) -> tuple[Domain, list[tuple[Input, Input]]]:
    if task == "transcript":
        seeds = [chirp(RATE, loudness=0.1 * n) for n in (1, 2, 3)]
        return AudioDomain(RATE), [(seed, noisy(seed, 60)) for seed in seeds]
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 250, (3, 48, 64, 3), np.uint8)
    return ImageDomain(), [(one, one + np.uint8(5)) for one in pictures]
