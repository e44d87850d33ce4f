"""What the world knows of faults in kernels: `known_issues/*.toml`, a file for each project.

A finding is a known issue where operator, type, symptom, kernel set and version are those of an
entry and its failing models meet the entry's condition. Nothing in a file is executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from edgeflare.conform.findings.accepted_findings import (
    BEYOND,
    THEN,
    AcceptedFinding,
    read_tables,
)
from edgeflare.conform.findings.fault_condition import FaultCondition, condition_fault
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.issue_probes import GraphProbe, IssueProbe, ProbedOperator
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.errors import UserError, suggestion
from edgeflare.keyword_settings import constructed
from edgeflare.shipped_files import shipped_folders
from edgeflare_protos.kernel_sets import Kernels

TABLES: Final = "issue"
"""The one key of a file: `[[issue]]` begins a table."""

IssueSymptom = Literal[
    "wrong-values", "biased", "not-finite", "wrong-shape", "crash", "hang", "refused", "rounding"
]
"""How an operator fails: a symptom of findings; it is refused; it differs by what rounding may."""

State = Literal["open", "closed", "merged"]

_MOST_ISSUES: Final = 1000
_MOST_TEXT: Final = 400
"""Bounds of a file, and of a text."""

_THREAD: Final = re.compile(r"[A-Za-z][\w.-]*#\d{1,7}")
_MONTH: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
_VERSION: Final = re.compile(r"(?:([a-z][\w.-]*) )?(\d+(?:\.\d+)*)")
_PACKAGE: Final = "ai-edge-litert"
"""The package whose versions are written without a name."""

_BEFORE: Final = "tflite-runtime"
"""The package that it followed: each of its versions is older."""


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """One entry.

    Attributes:
        says: what is wrong, in a line.
        operator: name in the schema; "ADD then SUM" for operators that fail joined; empty where it
            is none in particular.
        types: the operator's types that have it; () where that is not known.
        condition: predicates as findings have them, all of which a failing model meets; () where
            the fault may show always.
        arrangement: how operators have to be arranged, in words; empty for a fault of one alone.
        wired: the same in the words of findings, all of which a finding of operators has that are
            right alone and wrong together; () where they do not say it.
        symptoms: how it fails.
        kernel_sets: the kernel sets that have it.
        seen: versions that have it, from the oldest: "2.1.6" of ai-edge-litert, "tflite-runtime
            2.14.0" of another package.
        fixed: the first version that is right; empty where none is known.
        thread: the public thread, "LiteRT#9272"; empty where none is known.
        state: the state of the thread when it was read.
        read: the month in which it was read, "2026-09".
        work_around: what to do instead; empty where nothing is known.
        verified: whether EdgeFlare's authors saw it themselves.
        note: what else is known.
        probe: a model of one operator that shows it; None where none does.
        graph: a model of operators that are right alone and wrong together; None of one operator.

    """

    says: str
    operator: str = ""
    types: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    arrangement: str = ""
    wired: tuple[str, ...] = ()
    symptoms: tuple[IssueSymptom, ...] = ()
    kernel_sets: tuple[Kernels, ...] = ()
    seen: tuple[str, ...] = ()
    fixed: str = ""
    thread: str = ""
    state: State | None = None
    read: str = ""
    work_around: str = ""
    verified: bool = False
    note: str = ""
    probe: IssueProbe | None = None
    graph: GraphProbe | None = None

    def __post_init__(self) -> None:
        """Refuse what is no entry.

        Raises:
            UserError: a text is too long, or there is no such operator, type, setting or version,
                or the probe is no valid model.

        """
        self._require_texts()
        operators = self.operator.split(THEN) if self.operator else []
        known = known_operators()
        for operator in operators:
            if operator not in known and (self.condition or self.probe is not None):
                raise UserError(
                    f"operator is {operator!r}, which is not known{suggestion(operator, known)}:"
                    " `edgeflare conform --list` shows all"
                )
        if len(operators) != 1 and (self.condition or self.probe is not None):
            raise UserError("a condition and a probe are of one operator: leave them out")
        if operators and operators[0] in known:
            self._require_cells(operators[0])
        if self.probe is not None:
            self.probe.require_valid(self.operator)

    def _require_texts(self) -> None:
        texts = (
            *(self.says, self.arrangement, self.work_around, self.note),
            *(*self.condition, *self.wired),
        )
        for text in texts:
            if len(text) > _MOST_TEXT or not text.isprintable():
                raise UserError(f"{text[:40]!r} is longer than {_MOST_TEXT} characters or no line")
        if self.thread and not (_THREAD.fullmatch(self.thread) and self.state and self.read):
            raise UserError(
                f"thread is {self.thread!r}: write it as LiteRT#9272, with state and read"
            )
        if self.read and not _MONTH.fullmatch(self.read):
            raise UserError(f"read is {self.read!r}: write the month, as 2026-09")
        for version in (*self.seen, *filter(None, [self.fixed])):
            if not _VERSION.fullmatch(version):
                raise UserError(f"{version!r} is no version: write 2.1.6 or tflite-runtime 2.14.0")

    def _require_cells(self, operator: str) -> None:
        types = known_operators()[operator].types
        for type_ in self.types:
            if type_ not in types:
                raise UserError(f"types has {type_!r}: write some of {', '.join(types)}")
        try:
            FaultCondition.parsed(self.condition)
        except ValueError as error:
            raise UserError(f"condition: {error}") from None

    @property
    def unmet_condition(self) -> str | None:
        """Why no model of its operator can meet its condition; None where one may."""
        operators = self.operator.split(THEN) if self.operator else []
        condition = FaultCondition.parsed(self.condition)
        cells = [(operator, type_) for operator in operators for type_ in self.types]
        return next(filter(None, (condition_fault(cell, condition) for cell in cells)), None)

    @property
    def is_probed(self) -> bool:
        """Whether there is a model that shows it."""
        return self.probe is not None or self.graph is not None

    @property
    def name(self) -> str:
        """What people call it: its thread, or what is wrong."""
        return self.thread or self.says

    def is_seen_in(self, package: str, version: str) -> bool:
        """Return whether a version has it, or may: none that is right is known between."""
        at = version_key(package, version)
        known = (version_key(*named_version(text)) for text in self.seen)
        if at is None or not [key for key in known if key is not None and key <= at]:
            return False
        fixed = version_key(*named_version(self.fixed)) if self.fixed else None
        return fixed is None or at < fixed


def named_version(text: str) -> tuple[str, str]:
    """Return package and version of what an entry names."""
    found = _VERSION.fullmatch(text)
    return (found[1] or _PACKAGE, found[2]) if found else ("", "")


def version_key(package: str, version: str) -> tuple[int, ...] | None:
    """Return what orders versions of TFLite's packages; None of others, and of no version."""
    if package not in (_PACKAGE, _BEFORE) or not re.fullmatch(r"\d+(\.\d+)*", version):
        return None
    return (int(package == _PACKAGE), *map(int, version.split(".")))


@dataclass(frozen=True, slots=True)
class KnownFaults:
    """What is known of faults where a run looks for them.

    Attributes:
        accepted: findings that the user accepts.
        issues: what the world knows.
        kernels: the device's kernel set.
        runtime: package and version of the device's runtime.
        host_runtime: those of the host's, the kernel sets of which are compared with the device.

    """

    accepted: Sequence[AcceptedFinding] = ()
    issues: Sequence[KnownIssue] = ()
    kernels: str = ""
    runtime: tuple[str, str] = ("", "")
    host_runtime: tuple[str, str] = ("", "")

    def issue(
        self,
        key: FindingKey,
        wrong: Sequence[str],
        failing: Sequence[Mapping[str, Setting]],
        wired: Sequence[str] = (),
    ) -> KnownIssue | None:
        """Return the issue that a finding is; None where none is known.

        It is one where operator, type, symptom, kernel sets and versions are those of an entry, and
        the failing models, but for one in twenty, meet the entry's condition. Of several entries
        the one whose condition says most, of these one with an open thread.

        Args:
            key: the finding's key.
            wrong: the arms that are wrong.
            failing: the settings of its failing models, facts among them; () of joined operators.
            wired: how joined operators hang together, in the words of findings.

        """
        blamed = {arm: self.host_runtime for arm in wrong if arm != DEVICE}
        if key.verdict != "host":
            blamed[self.kernels] = self.runtime
        named = (issue for issue in self.issues if _names(issue, key, blamed, wired))
        table = SettingsTable(failing)
        found = [issue for issue in named if _is_met(issue, table)]
        return max(found, key=_preference, default=None)


def _names(
    issue: KnownIssue,
    key: FindingKey,
    blamed: Mapping[str, tuple[str, str]],
    wired: Sequence[str],
) -> bool:
    """Return whether an entry is of a finding's operator, type, symptom, kernels and versions."""
    if issue.wired or wired or issue.arrangement:
        own = bool(issue.wired) and set(issue.wired) <= set(wired)
        operators = issue.operator in ("", key.operator) and (
            not issue.types or key.type in issue.types
        )
    else:
        own = issue.operator == key.operator
        operators = key.type in issue.types
    return (
        own
        and operators
        and key.symptom in issue.symptoms
        and bool(blamed)
        and blamed.keys() <= set(issue.kernel_sets)
        and all(issue.is_seen_in(*runtime) for runtime in blamed.values())
    )


def _is_met(issue: KnownIssue, failing: SettingsTable) -> bool:
    if not issue.condition:
        return True
    held = FaultCondition.parsed(issue.condition).held(failing)
    return len(failing) > 0 and bool(held.sum() >= (1 - BEYOND) * len(failing))


def _preference(issue: KnownIssue) -> tuple[int, bool, bool]:
    return len(issue.condition) + len(issue.wired), issue.state == "open", bool(issue.thread)


def read_issues(path: Path) -> tuple[KnownIssue, ...]:
    """Return the entries of a file that a user may have written, in their order.

    Raises:
        UserError: see `read_tables`; or there are too many, or one says something else than it may.

    """
    issues = _entries(path)
    for number, issue in enumerate(issues, 1):
        if fault := issue.unmet_condition:
            raise UserError(f"{path}: table {number}: condition: {fault}")
    return issues


def _entries(path: Path) -> tuple[KnownIssue, ...]:
    """Return the entries of a file, whose conditions are not held to models of their operators.

    That draws models of each operator, which took three quarters of the time.
    """
    tables = read_tables(path, TABLES)
    if len(tables) > _MOST_ISSUES:
        raise UserError(f"{path}: it has more than {_MOST_ISSUES:,} tables: split it")
    return tuple(_issue(table, f"{path}: table {number}") for number, table in enumerate(tables, 1))


def _issue(table: Mapping[str, Any], where: str) -> KnownIssue:
    probe = table.get("probe")
    if isinstance(probe, dict):
        table = {**table, "probe": constructed(IssueProbe, probe, f"{where}: probe")}
    graph = table.get("graph")
    if isinstance(graph, dict):
        table = {**table, "graph": _graph(graph, f"{where}: graph")}
    return constructed(KnownIssue, table, where)


def _graph(graph: Mapping[str, Any], where: str) -> GraphProbe:
    several = graph.get("operators")
    if not isinstance(several, list) or not all(isinstance(each, dict) for each in several):
        raise UserError(f"{where}: operators are no tables")
    operators = [
        constructed(ProbedOperator, each, f"{where}: operator {number}")
        for number, each in enumerate(several)
    ]
    return constructed(GraphProbe, {**graph, "operators": operators}, where)


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """Return all that is known: what is shipped, and ~/.config/edgeflare/known_issues/*.toml.

    Raises:
        UserError: see `read_issues`.

    """
    shipped = (issue for path in shipped_issue_files() for issue in _entries(path))
    own = (issue for path in _own_issue_files() for issue in read_issues(path))
    return (*shipped, *own)


def shipped_issue_files() -> Iterator[Path]:
    """Yield the files that are shipped, which a test holds to what `read_issues` refuses."""
    for folder in shipped_folders("known_issues", "known_issues"):
        yield from sorted(folder.glob("*.toml"))


def _own_issue_files() -> Iterator[Path]:
    own = Path(os.path.expanduser("~/.config/edgeflare/known_issues"))
    yield from sorted(own.glob("*.toml"))
