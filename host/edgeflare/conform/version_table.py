"""Since which version findings show: their least models on kernel sets of released runtimes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.runtime_arms import RuntimeArm, judged_stored, shows_only
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.pages.facts import in_words
from edgeflare.pages.page import Section, Table
from edgeflare.record.json_types import CountFromOne
from edgeflare_protos import __version__

VERSIONS_DOCUMENT: Final = "versions.json"
VERSIONS_TABLE: Final = "versions.md"

VersionOutcome = Literal["wrong", "otherwise", "right", "refused", "crash", "hang", "not-tried"]
"""What became of a finding: it fails as it did; it is wrong in another way; it is right; the
runtime refuses its model; its process dies; it does not answer in time; one run of its model alone
would not show it."""

_SAY_NOTHING: Final = ("refused", "not-tried")

_LEGEND: Final = (
    "Wrong: the least model fails as it was found. Otherwise: it is wrong in another way. Each"
    " answer is held to exact arithmetic alone. Not tried: it does not show in one run of its model"
    " alone."
)


class VersionDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.versions/v1"
):
    """Findings of a conformance run on released versions of the runtime.

    Attributes:
        edgeflare: version that wrote it.
        runtimes: the versions with their packages, from the oldest.
        findings: a row for each finding, in the order of the run.

    """

    edgeflare: str
    runtimes: tuple[str, ...]
    findings: tuple[VersionRow, ...]


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a conformance run.

    Attributes:
        number: the finding's number in that run.
        operator: name of the operator.
        type: the operator's type.
        kernels: what became of it, by the kernel set with its version, such as "xnnpack@2.2.0".
        since: what that comes to, by kernel set, in words.

    """

    number: CountFromOne
    operator: str
    type: str
    kernels: Mapping[str, VersionOutcome]
    since: Mapping[str, str]


def version_document(
    models: Sequence[StoredModel],
    arms: Iterable[RuntimeArm],
    tried: Callable[[str, int], None] = lambda _name, _done: None,
) -> VersionDocument:
    """Try findings on kernel sets of released versions.

    Args:
        models: the findings' least models.
        arms: the kernel sets, from the oldest version; each is done with when the next one is
            asked for.
        tried: is called with the name of a kernel set and how many findings were tried there.

    Raises:
        InfrastructureError: no process can be started there.

    """
    outcomes: dict[str, list[VersionOutcome]] = {}
    known: list[RuntimeArm] = []
    for arm in arms:
        known.append(arm)
        outcomes[arm.name] = []
        for done, stored in enumerate(models, 1):
            outcomes[arm.name].append(version_outcome(stored, arm))
            tried(arm.name, done)
    runtimes = dict.fromkeys(f"{arm.runtime.package} {arm.runtime.version}" for arm in known)
    rows = (
        _row(stored.finding, known, {name: by[at] for name, by in outcomes.items()})
        for at, stored in enumerate(models)
    )
    return VersionDocument(edgeflare=__version__, runtimes=tuple(runtimes), findings=tuple(rows))


def version_outcome(stored: StoredModel, arm: RuntimeArm) -> VersionOutcome:
    """Return what becomes of a finding on a kernel set of a version."""
    if shows_only(stored.finding) is not None:
        return "not-tried"
    said = judged_stored(stored, arm.arm)
    return outcome_of(said, stored.finding.symptom)


def outcome_of(said: KernelJudgement, symptom: str) -> VersionOutcome:
    """Return what a judgement is to a finding of a symptom."""
    if said.verdict == "refused":
        return "refused"
    if said.symptom == symptom and symptom not in ("crash", "hang"):
        return "wrong"
    if said.verdict in ("crash", "hang"):
        return said.verdict
    return "otherwise" if said.verdict in ("device", "shared") else "right"


def has_kernels(table: VersionDocument, kernels: str) -> bool:
    """Return whether findings were tried on a kernel set of a table's last version."""
    name = f"{kernels}@{table.runtimes[-1].rpartition(' ')[2]}"
    return any(name in row.kernels for row in table.findings)


def failing_still(document: ConformDocument, table: VersionDocument) -> list[FoundFault]:
    """Return the findings that count and fail on a table's last version, where they were found.

    So do those found on kernels that the table has not: nothing says that they are right.

    Args:
        document: the run's.
        table: its findings on released versions.

    """
    last = table.runtimes[-1].rpartition(" ")[2]
    tried = {row.number: row.kernels for row in table.findings}
    return [
        finding
        for finding in document.findings
        if finding.is_new
        and any(
            tried[finding.number].get(f"{kernels}@{last}") not in ("right", "refused")
            for kernels in _blamed(document, finding)
        )
    ]


def _blamed(document: ConformDocument, finding: FoundFault) -> Sequence[str]:
    """Return the kernel sets that a finding is of."""
    return finding.wrong if finding.verdict == "host" else (document.device.kernels,)


def _row(
    finding: FoundFault, arms: Sequence[RuntimeArm], by: Mapping[str, VersionOutcome]
) -> VersionRow:
    series: dict[str, list[tuple[str, VersionOutcome]]] = {}
    for arm in arms:
        series.setdefault(arm.kernels, []).append((arm.runtime.version, by[arm.name]))
    return VersionRow(
        number=finding.number,
        operator=finding.operator,
        type=finding.type,
        kernels=by,
        since={kernels: since_words(versions) for kernels, versions in series.items()},
    )


def since_words(outcomes: Sequence[tuple[str, str]]) -> str:
    """Return what a kernel set's versions come to, such as "right from 2.2.0 on".

    Args:
        outcomes: versions from the oldest, each with what became of a finding. What is refused or
            not tried says nothing.

    """
    told = [
        (version, outcome == "right")
        for version, outcome in outcomes
        if outcome not in _SAY_NOTHING
    ]
    if not told:
        return in_words(outcomes[-1][1])
    changes = [at for at in range(1, len(told)) if told[at][1] != told[at - 1][1]]
    last = "right" if told[-1][1] else "wrong"
    if not changes:
        return last
    if len(changes) == 1:
        return f"{last} from {told[changes[0]][0]} on"
    wrong = ", ".join(version for version, right in told if not right)
    return f"wrong in {wrong}"


def version_section(document: VersionDocument) -> Section:
    """Return a row for each finding and kernel set, a column for each version."""
    versions = [runtime.rpartition(" ")[2] for runtime in document.runtimes]
    rows = [
        (
            f"{row.number} {row.operator} {row.type}",
            kernels,
            *(in_words(row.kernels.get(f"{kernels}@{version}", "–")) for version in versions),
            since,
        )
        for row in document.findings
        for kernels, since in row.since.items()
    ]
    table = Table(
        title="",
        header=("finding", "kernels", *versions, "since"),
        rows=rows,
        note=_LEGEND,
        numbers_from=3 + len(versions),
        missed_least=versions[:-1],
    )
    return Section(id="versions", title="Since which version", blocks=[table])
