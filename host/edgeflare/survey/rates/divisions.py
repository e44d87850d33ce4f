"""The items of a survey divided into slices: by condition, severity, cell, class, group, device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflare.survey.items.survey_facts import Flags, Numbers, SurveyFacts


@dataclass(frozen=True, slots=True)
class SliceName:
    """What a slice is called, and what it is restricted to; see `SurveySlice`."""

    name: str
    condition: str | None = None
    severity: int | None = None
    label: int | None = None
    group: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """Items divided into slices, which have no item in common.

    Attributes:
        of: (items,) int64, the slice of each, from 0; -1 for items of none.
        names: what each is called; all have items.

    """

    of: Numbers
    names: tuple[SliceName, ...]


def divided_by_condition(facts: SurveyFacts) -> Division:
    """Divide all items but the unchanged ones by condition."""
    conditions = dict.fromkeys(cell.condition for cell in facts.cells[1:])
    places = {name: at for at, name in enumerate(conditions)}
    of_cells = [-1, *(places[cell.condition] for cell in facts.cells[1:])]
    names = (SliceName(name, condition=name) for name in conditions)
    return Division(np.array(of_cells)[facts.cell], tuple(names))


def divided_by_severity(facts: SurveyFacts) -> Division:
    """Divide all items but the unchanged ones by severity."""
    severities = sorted({cell.severity for cell in facts.cells[1:]})
    of_cells = [-1, *(severities.index(cell.severity) for cell in facts.cells[1:])]
    names = (SliceName(f"severity {severity}", severity=severity) for severity in severities)
    return Division(np.array(of_cells)[facts.cell], tuple(names))


def divided_by_cell(facts: SurveyFacts) -> Division:
    """Divide all items by cell; the unchanged ones are the first slice."""
    names = (
        SliceName(
            f"{cell.condition} {cell.severity}" if at else cell.condition,
            condition=cell.condition,
            severity=cell.severity,
        )
        for at, cell in enumerate(facts.cells)
    )
    return Division(facts.cell, tuple(names))


def divided_by_class(facts: SurveyFacts, among: Flags) -> Division:
    """Divide some items by the class of the input."""
    known = among & (facts.classes >= 0)
    labels, of_known = np.unique(facts.classes[known], return_inverse=True)
    of = np.full(facts.items, -1)
    of[known] = of_known
    return Division(
        of, tuple(SliceName(f"class {label}", label=label) for label in labels.tolist())
    )


def divided_by_group(facts: SurveyFacts, among: Flags) -> Division:
    """Divide some items by the group of the input; groups without inputs are left out."""
    found = np.unique(facts.groups[facts.groups >= 0]).tolist()
    places = np.full(len(facts.group_names) + 1, -1)  # the last for inputs without a group
    places[found] = range(len(found))
    names = (facts.group_names[group] for group in found)
    of = np.where(among, places[facts.groups], -1)
    return Division(of, tuple(SliceName(name, group=name) for name in names))


def divided_by_device(facts: SurveyFacts, among: Flags) -> Division:
    """Divide some items by the device that was given the input; one device has no slices."""
    names = facts.devices[: facts.inputs] if len(facts.devices) > 1 else ()
    of = np.where(among, facts.device, -1) if names else np.full(facts.items, -1)
    return Division(of, tuple(SliceName(name, device=name) for name in names))
