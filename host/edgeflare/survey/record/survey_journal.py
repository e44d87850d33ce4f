"""What a survey's journal says of its items, and whether a run has such a journal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import NO_DECISION, SURVEY_KEY, DeviceRow, HostRow
from edgeflare.survey.items.survey_facts import Flags, Floats, Numbers, SurveyFacts
from edgeflare.survey.record.survey_plan import STRATEGY, SurveyPlan, noted_plan

DISTANCE_KEY = "survey_distance"
"""The key of `about` under which the journal says what distances between answers are called."""

VOUCHED_KEY = "survey_vouched"
"""The key of `about` under which the journal says of how many draws, the first ones, the answers
were vouched for by an answer of their devices that came after them."""


@dataclass(frozen=True, slots=True)
class _InputFacts:
    """What is known of the inputs before any model is asked; arrays of (inputs,)."""

    labels: Numbers
    groups: Numbers
    group_names: tuple[str, ...]
    truth_measure: str


def read_facts(path: Path) -> SurveyFacts:
    """Return what is known of the items of a survey that was run.

    Args:
        path: the run directory.

    Raises:
        UserError: it holds no survey, or one whose host has not answered all items yet.

    """
    with RunJournal.read(RunDirectory(path).journal) as journal:
        return facts_of(journal)


def read_checksums(path: Path) -> dict[int, int]:
    """Return the checksums of the inputs of a survey that was run, by the item.

    Args:
        path: the run directory.

    """
    with RunJournal.read(RunDirectory(path).journal) as journal:
        return journal.survey.checksums()


def require_sound(journal: RunJournal) -> None:
    """Refuse a journal whose rows are not those of its survey's items."""
    items = noted_plan(journal).items
    with reporting_damage(journal.path):
        host = journal.survey.host_items()
        _require_items(host, items)
        _require_items(journal.survey.device_items(), items)
        vouched_draws(journal)
        if len(host) == items:
            facts_of(journal)


def vouched_draws(journal: RunJournal) -> int:
    """Return of how many draws, the first ones, the device's answers are vouched for.

    Raises:
        ValueError: the journal is damaged.

    """
    vouched = journal.about().get(VOUCHED_KEY, 0)
    if not isinstance(vouched, int) or vouched < 0:
        raise ValueError(f"it vouches for {vouched!r} answers")
    return vouched


def facts_of(journal: RunJournal, only: Collection[int] | None = None) -> SurveyFacts:
    """Return what is known of the items of a survey.

    Args:
        journal: journal of the survey, in which the host has answered all items.
        only: items of which the device's answers are wanted; None for all that there are.

    Raises:
        ValueError: the host has not answered all items, or the journal is damaged.

    """
    header, plan = RunHeader.from_json(journal.about()), noted_plan(journal)
    decoder = header.arms[Arm.TWIN]
    choices = decoder.choices if decoder.numbered else 0
    host, device = _rows(journal, plan.items, choices, only)
    cells, inputs = len(plan.cells), plan.inputs.count
    known = _inputs(header, plan)
    labelled = np.array([row.known for row in host], np.bool_)
    original = np.array([row.original_decision for row in host], np.int64)
    twin = np.array([row.twin_decision for row in host], np.int64)
    asked = np.array([row.item for row in device], np.int64)
    compared = _distances([row.twin_distance for row in host])
    apart = _spread([_number(row.device_distance) for row in device], asked, len(host))
    has_original = Arm.ORIGINAL in header.arms
    decided = (original if has_original else twin)[:inputs]
    counted = choices > 0
    return SurveyFacts(
        cells=plan.cells,
        inputs=inputs,
        has_original=has_original,
        labelled=labelled,
        classes=np.tile(np.where(labelled[:inputs], known.labels, decided), cells),
        groups=np.tile(known.groups, cells),
        group_names=known.group_names,
        devices=tuple(run_device.name for run_device in header.devices),
        compression=np.array([row.compression for row in host], np.bool_),
        compression_tied=np.array([row.compression_tied for row in host], np.bool_),
        original_right=np.array([row.original_right for row in host], np.bool_),
        twin_right=np.array([row.twin_right for row in host], np.bool_),
        margin=np.array([row.margin for row in host], np.float64),
        doubtful=np.array([row.doubtful for row in host], np.bool_),
        distance_noun=journal.about().get(DISTANCE_KEY, ""),
        twin_distance=compared,
        original_decision=original if has_original and counted else None,
        twin_decision=twin if counted else None,
        device_distance=None if DISTANCE_KEY not in journal.about() else apart,
        truth_measure=known.truth_measure,
        **_truth_distances(host, device, asked, known),
        **_of_device(device, asked, len(host), counted=counted),
    )


def host_is_done(journal: RunJournal) -> bool:
    """Whether the host's arms answered all items of a survey."""
    return journal.survey.host_count() == noted_plan(journal).items


def _rows(
    journal: RunJournal, items: int, choices: int, only: Collection[int] | None
) -> tuple[list[HostRow], list[DeviceRow]]:
    """Return what host and device said, and refuse rows that no survey of so many items wrote."""
    host, device = journal.survey.host(), journal.survey.device()
    _require_items([row.item for row in host], items)
    _require_items([row.item for row in device], items)
    if len(host) != items:
        raise ValueError(f"the host answered {len(host)} of {items} items")
    for answer in host:
        if not (answer.margin >= 0.0 and _decides(answer.original_decision, choices)):
            raise ValueError(f"the host cannot have answered item {answer.item} so")
        if not _decides(answer.twin_decision, choices):
            raise ValueError(f"the twin cannot decide on {answer.twin_decision!r}")
    for row in device:
        if not _decides(row.device_decision, choices):
            raise ValueError(f"the device cannot decide on {row.device_decision!r}")
    return host, [row for row in device if only is None or row.item in only]


def _require_items(found: Collection[int], items: int) -> None:
    for item in found:
        if not 0 <= item < items:
            raise ValueError(f"item {item} is none of its {items}")


def _decides(decision: int, choices: int) -> bool:
    """Whether a decision is a class, or `NO_DECISION`."""
    return NO_DECISION <= decision < max(choices, 0)


def _of_device(
    device: Sequence[DeviceRow], asked: Numbers, items: int, *, counted: bool
) -> dict[str, Any]:
    """Return the fields of facts that the device decides, but for its distances."""

    def flags(values: list[bool]) -> Flags:
        every = np.zeros(items, np.bool_)
        every[asked] = values
        return every

    decisions = np.full(items, NO_DECISION, np.int64)
    decisions[asked] = [row.device_decision for row in device]
    return {
        "asked": flags([True] * len(device)),
        "deviates": flags([row.deviates for row in device]),
        "deviates_tied": flags([row.deviates_tied for row in device]),
        "kernel": flags([row.kernel for row in device]),
        "kernel_tied": flags([row.kernel_tied for row in device]),
        "failed": flags([row.failed for row in device]),
        "device_decision": decisions if counted else None,
        "device_right": flags([row.device_right for row in device]),
        "strength": _spread([_number(row.strength) for row in device], asked, items),
    }


def _truth_distances(
    host: Sequence[HostRow], device: Sequence[DeviceRow], asked: Numbers, known: _InputFacts
) -> dict[str, Any]:
    """Return the fields of facts that say how far arms are from targets; none without targets."""
    if not known.truth_measure:
        return {}
    apart = [_number(row.device_truth_distance) for row in device]
    return {
        "original_truth_distance": _floats([row.original_truth_distance for row in host]),
        "twin_truth_distance": _floats([row.twin_truth_distance for row in host]),
        "device_truth_distance": _spread(apart, asked, len(host)),
    }


def _inputs(header: RunHeader, plan: SurveyPlan) -> _InputFacts:
    count = plan.inputs.count
    truths = header.truths
    if truths.given and len(truths) != count:
        raise ValueError(f"it says of {len(truths)} of {count} inputs what is right")
    labels = truths.decisions() if truths.given else np.full(count, NO_DECISION, np.int64)
    measure = truths.measure()
    if plan.groups is None:
        return _InputFacts(labels, np.full(count, -1, np.int64), (), measure)
    groups, names = np.array(plan.groups.of_inputs, np.int64), plan.groups.names
    if groups.shape != (count,) or not ((groups >= 0) & (groups < len(names))).all():
        raise ValueError(f"its groups are not those of {count} inputs")
    return _InputFacts(labels, groups, names, measure)


def _distances(values: Sequence[float | None]) -> Floats | None:
    """Return distances, NaN where an arm failed; None where none is measured."""
    if all(value is None for value in values):
        return None
    return _floats(values)


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([_number(value) for value in values], np.float64)


def _spread(values: Sequence[float], at: Numbers, items: int) -> NDArray[np.float64]:
    """Return values of some items among all, NaN elsewhere."""
    every = np.full(items, nan)
    every[at] = values
    return every


def _number(value: float | None) -> float:
    return nan if value is None else value


def require_survey(path: Path, option: str) -> None:
    """Refuse a run that is no survey.

    Args:
        path: the run directory.
        option: option by which the user named it.

    Raises:
        UserError: there is no run, or it is a search or a replay.

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
