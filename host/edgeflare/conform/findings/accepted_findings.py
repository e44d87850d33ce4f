"""Findings that a user accepts: `accepted.toml`, and which findings of a run it names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.fault_condition import FaultCondition, condition_fault
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.kernel_judgement import Symptom, Verdict
from edgeflare.errors import UserError, path_suggestion, suggestion
from edgeflare.keyword_settings import constructed
from edgeflare.outside_text import read_toml
from edgeflare.untrusted_text import for_json

THEN: Final = " then "
"""The word between the operators of a finding that fail joined."""

_VERDICTS: tuple[Verdict, ...] = ("device", "host", "shared", "undefined", "crash", "hang")
"""What a finding may have; models of other verdicts make none."""

BEYOND = 0.05
"""Share of a finding's models that may lie beyond the conditions that name it."""

TABLES = "accepted"
"""The one key of a file: `[[accepted]]` begins a table."""


@dataclass(frozen=True, slots=True)
class AcceptedFinding:
    """What a table says.

    Attributes:
        operator: name in the schema; "RELU then NEG" for operators that fail joined.
        type: type of the operator, or of the first.
        verdict: the finding's verdict.
        symptom: the finding's symptom.
        reason: why it does not count, as reports show it.
        condition: predicates, as `Predicate` has them; () where the fault may show always.
        wired: how operators hang together that are right alone and wrong together, in the words of
            findings; () of an operator that is wrong alone, and where they stand in a row.

    """

    operator: str
    type: str
    verdict: Verdict
    symptom: Symptom
    reason: str
    condition: tuple[str, ...] = ()
    wired: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no finding of an operator.

        Raises:
            UserError: there is no such operator or type, or a predicate is none, or operators that
                are wrong together have a condition.

        """
        known = known_operators()
        operators = self.operator.split(THEN)
        for operator in operators:
            if operator not in known:
                raise UserError(
                    f"operator is {operator!r}, which is not known{suggestion(operator, known)}: "
                    "`edgeflare conform --list` shows all"
                )
        types = known[operators[0]].types
        if self.type not in types:
            raise UserError(
                f"type is {self.type!r}: write one that {operators[0]} has: {', '.join(types)}"
            )
        if self.condition and (len(operators) > 1 or self.wired):
            raise UserError(
                f"condition is {list(self.condition)}: operators that are wrong together have none:"
                " leave it out"
            )
        if self.verdict not in _VERDICTS:
            raise UserError(f"verdict is {self.verdict!r}: write one of {', '.join(_VERDICTS)}")
        try:
            condition = FaultCondition.parsed(self.condition)
        except ValueError as error:
            raise UserError(f"condition: {error}") from None
        if fault := condition_fault((self.operator, self.type), condition):
            raise UserError(f"condition: {fault}")

    def names(self, key: FindingKey, wired: Sequence[str] = ()) -> bool:
        """Return whether a finding is of this operator, type, verdict and symptom, and wired so.

        An operator that is wrong alone has another fault than the same one in a graph.
        """
        mine = (self.operator, self.type, self.verdict, self.symptom)
        return (
            mine == (key.operator, key.type, key.verdict, key.symptom)
            and bool(self.wired) == bool(wired)
            and set(self.wired) <= set(wired)
        )

    def held(self, failing: SettingsTable) -> NDArray[np.bool_]:
        """Return which failing models meet the condition: (models,)."""
        return FaultCondition.parsed(self.condition).held(failing)


def accepted_reason(
    key: FindingKey,
    failing: Sequence[Mapping[str, Setting]],
    accepted: Sequence[AcceptedFinding],
    wired: Sequence[str] = (),
) -> str | None:
    """Return the reason that a user gave for a finding, None for one that is new.

    It is accepted where its failing models, but for one in twenty, meet the condition of one table
    or another: what was one finding in another run may be two in this, or the other way about, and
    where a condition ends is learned from the models of one run.

    Args:
        key: the finding's key.
        failing: the settings of its failing models; () of operators that are wrong together.
        accepted: what the user accepts.
        wired: how operators hang together that are right alone and wrong together.

    Returns:
        The reason of the table that most of them meet, of several the first.

    """
    named = [finding for finding in accepted if finding.names(key, wired)]
    table = SettingsTable(failing)
    held = [finding.held(table) for finding in named]
    if not named or np.any(held, axis=0).sum() < (1 - BEYOND) * len(failing):
        return None
    return named[int(np.argmax(np.sum(held, axis=1)))].reason


def accepted_table(
    key: FindingKey, condition: FaultCondition, reason: str, wired: Sequence[str] = ()
) -> str:
    """Return the table of an `accepted.toml` that names a finding."""
    values: Mapping[str, object] = {
        "operator": key.operator,
        "type": key.type,
        "verdict": key.verdict,
        "symptom": key.symptom,
        **({"wired": list(wired)} if wired else {"condition": condition.texts}),
        "reason": reason,
    }
    # What JSON escapes, and how, is TOML too, but for DEL, which it leaves as it is.
    lines = [
        f"{name} = {for_json(json.dumps(value, ensure_ascii=False))}"
        for name, value in values.items()
    ]
    return "\n".join([f"[[{TABLES}]]", *lines, ""])


def read_accepted(path: Path) -> tuple[AcceptedFinding, ...]:
    """Return the tables of a file, in their order.

    Raises:
        UserError: see `read_tables`; or a table says something else than it may.

    """
    return tuple(
        constructed(AcceptedFinding, table, f"{path}: table {number}")
        for number, table in enumerate(read_tables(path, TABLES), 1)
    )


def read_tables(path: Path, name: str) -> list[dict[str, Any]]:
    """Return the tables of a TOML file that has tables of one name alone.

    Args:
        path: the file.
        name: their name: `[[name]]` begins a table.

    Raises:
        UserError: the file cannot be read or is no TOML, or has another key.

    """
    try:
        content = read_toml(path)
    except OSError as error:
        like = path_suggestion(path, lambda other: other.suffix == ".toml")
        raise UserError(f"{path}: cannot be read: {error.strerror}{like}") from None
    for key in content:
        if key != name:
            like = suggestion(key, [name])
            raise UserError(f"{path}: unknown key {key}{like}: begin each table by [[{name}]]")
    tables = content.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{path}: {name} is no list of tables: begin each table by [[{name}]]")
    return tables


def joined_name(operators: Sequence[str]) -> str:
    """Return the name of operators in their order, of one its own."""
    return THEN.join(operators)
