"""A gate: what a survey has to show for a release, such as "rate<0.01 under noise"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.errors import UserError, suggestion
from edgeflare.statistics.proportion import written_limit
from edgeflare.survey.items.survey_facts import (
    ACCURACY_DROP,
    RATES,
    UNCHANGED,
    Cell,
    Flags,
    Numbers,
    SurveyFacts,
)

_GATE = re.compile(
    r"(?P<measure>[a-z-]+)\s*<\s*(?P<limit>[0-9.eE-]+(?:\s*%)?)"
    r"(?:\s+under\s+(?P<condition>[\w.-]+))?(?:\s+at\s+severity\s+(?P<severity>[0-9]{1,9}))?"
    r"(?:\s+for\s+group\s+(?P<group>.+))?"
)
_EXPECTED = (
    "expected a measure, < and a number or a percentage, as in 'rate<0.01', 'rate<1%',"
    " 'accuracy-drop<0.005 under noise', 'rate<0.02 under fog at severity 3' or"
    " 'rate<0.01 for group NAME'"
)
_MISTAKES = (
    (r"[^<]*(<\s*=|=\s*<|[>=≤≥])", "a measure has to be below its limit, and the sign is <"),
    (r"[^<]*<\s*[0-9]*,[0-9]", "a limit has a point and no comma, as in 0.01"),
    (
        r".*\b(at\s+severity|for\s+group)\b.*\s(under|at\s+severity)\s",
        "its parts come in this order: under CONDITION, at severity N, for group NAME",
    ),
    (r".*\bat\s+(?!severity\b)", "a severity is named as in 'at severity 3'"),
    (r".*\bfor\s+(?!group\b)", "a group is named as in 'for group NAME'"),
    (r"\s*[A-Z-]*[A-Z]", "measures are written in small letters"),
)
"""What a text that is no gate most likely has wrong: how it begins, and what is said of it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate.

    Attributes:
        text: as the user wrote it.
        measure: one of `RATES`, or the accuracy drop. Without an original, rates are those of
            kernels.
        limit: bound that the measure has to stay below.
        condition: a condition's or a set's name; None for all.
        severity: the only one that counts; None for all.
        group: the only one that counts; None for all.

    """

    text: str
    measure: str
    limit: float
    condition: str | None = None
    severity: int | None = None
    group: str | None = None

    def items(self, facts: SurveyFacts, sets: Mapping[str, frozenset[str]]) -> NDArray[np.bool_]:
        """Return the items that the gate is about: (items,) bool."""
        counted = np.asarray([self._counts(cell, facts.cells, sets) for cell in facts.cells])
        of: NDArray[np.bool_] = counted[facts.cell]
        if self.group is not None:
            of &= facts.groups == facts.group_names.index(self.group)
        if self.measure == ACCURACY_DROP:
            of &= facts.labelled
        return of

    def cells(self, cells: Sequence[Cell], sets: Mapping[str, frozenset[str]]) -> tuple[Cell, ...]:
        """Return the cells of a survey that the gate is about."""
        return tuple(cell for cell in cells if self._counts(cell, cells, sets))

    def _counts(
        self, cell: Cell, cells: Sequence[Cell], sets: Mapping[str, frozenset[str]]
    ) -> bool:
        if self.severity not in (None, cell.severity):
            return False
        if self.condition is None:
            return cell.condition != UNCHANGED or len(cells) == 1
        return cell.condition in sets.get(self.condition, {self.condition})


def parse_gate(text: str) -> Gate:
    """Return the gate that a text says.

    Raises:
        UserError: it says none.

    """
    found = _GATE.fullmatch(text.strip())
    if found is None:
        wrong = (f"{said}; " for begins, said in _MISTAKES if re.match(begins, text))
        raise UserError(f"--gate {text!r}: {next(wrong, '')}{_EXPECTED}")
    measures = (*RATES, ACCURACY_DROP)
    measure = found["measure"]
    if measure not in measures:
        like = suggestion(measure, measures, "did you mean {}? ")
        raise UserError(
            f"--gate {text!r}: no measure is called {measure!r}: {like}there are"
            f" {', '.join(measures)}"
        )
    try:
        limit = written_limit(found["limit"])
    except ValueError:
        raise UserError(f"--gate {text!r}: {_EXPECTED}") from None
    if not 0.0 < limit < 1.0:
        raise UserError(f"--gate {text!r}: expected a limit above 0 and below 1, or in percent")
    severity = found["severity"]
    if severity is not None and int(severity) not in SEVERITIES:
        raise UserError(f"--gate {text!r}: expected a severity from 1 to 5")
    return Gate(
        text.strip(), measure, limit, found["condition"],
        None if severity is None else int(severity), found["group"],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class GatedInputs:
    """What gates have to know of the inputs of a survey.

    Attributes:
        has_original: whether the pair has an original.
        labelled: (inputs,) whether what is right for each is known.
        groups: (inputs,) the group of each, an index into `group_names`.
        group_names: empty without groups.
        classes: whether the task's answers are classes, of which labels say what is right.
        conditions: names of conditions and sets that can be surveyed, whether they are or not.

    """

    has_original: bool
    labelled: Flags
    groups: Numbers
    group_names: tuple[str, ...]
    classes: bool = True
    conditions: frozenset[str] = frozenset()


def require_decidable(
    gate: Gate,
    cells: Sequence[Cell],
    sets: Mapping[str, frozenset[str]],
    inputs: GatedInputs,
) -> None:
    """Refuse a gate about something that the survey does not have.

    Args:
        gate: the gate.
        cells: what is surveyed.
        sets: the surveyed conditions of each set, by its name.
        inputs: surveyed inputs.

    """
    said = f"--gate {gate.text!r}"
    _require_cells(gate, cells, sets, inputs.conditions)
    among = np.ones(len(inputs.labelled), dtype=bool)
    if gate.group is not None:
        if not inputs.group_names:
            raise UserError(f"{said} needs groups: name their column with --groups")
        if gate.group not in inputs.group_names:
            listed = ", ".join(inputs.group_names)
            like = suggestion(gate.group, inputs.group_names, "did you mean {}? ")
            raise UserError(
                f"{said}: no input is in the group {gate.group!r}: {like}there are {listed}"
            )
        among = inputs.groups == inputs.group_names.index(gate.group)
    if gate.measure != ACCURACY_DROP:
        return
    if not inputs.has_original:
        raise UserError(f"{said} compares with the original, and the pair has none")
    if not (among & inputs.labelled).any():
        of = "no input" if gate.group is None else f"no input of the group {gate.group!r}"
        what, array = ("label", "labels") if inputs.classes else ("target", "targets")
        raise UserError(
            f"{said} needs to know who is right, and {of} has a {what}: give --inputs in an .npz"
            f" with an array `{array}`"
        )


def _require_cells(
    gate: Gate,
    cells: Sequence[Cell],
    sets: Mapping[str, frozenset[str]],
    conditions: Collection[str],
) -> None:
    """Refuse a gate about a condition or a severity that is not surveyed."""
    if gate.cells(cells, sets):
        return
    said = f"--gate {gate.text!r}"
    names = sorted({cell.condition for cell in cells} | set(sets))
    if gate.condition is not None and gate.condition not in names:
        if gate.condition in conditions:
            raise UserError(
                f"{said}: {gate.condition!r} is not surveyed: add {gate.condition} to --conditions"
            )
        like = suggestion(gate.condition, names, "did you mean {}? ")
        raise UserError(
            f"{said}: {gate.condition!r} is not surveyed: {like}there are {', '.join(names)};"
            " --conditions says what is surveyed"
        )
    under = "" if gate.condition is None else f" {gate.condition} at"
    raise UserError(
        f"{said}:{under} severity {gate.severity} is not surveyed: see --severities, or"
        " `severities` in the file of --conditions"
    )
