"""`edgeflare doctor --known-issues`: what the world knows of faults, and which show on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict

from edgeflare.cli.console import Console
from edgeflare.cli.version_launch import installed
from edgeflare.conform.conformance_arms import open_conformance
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.execution.model_opener import HOST_KERNELS
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.known_issues import KnownFaults, KnownIssue, known_issues
from edgeflare.conform.graphs.wrong_part import WrongPart
from edgeflare.conform.issue_reproduction import ProbedIssue, ProbeOutcome, probed_issues
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_finding import linked_issue
from edgeflare.conform.runtime_arms import COMPILED_KERNELS, runtime_arms
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.conform.version_table import since_words
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import Profile, names_all
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.provenance import Provenance
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.pages.page import Sentences, Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.progress import ProgressDisplay, observe, say
from edgeflare.trust import Trust
from edgeflare.untrusted_text import printable

Probed = Mapping[str, Sequence[ProbedIssue]]
"""What became of issues, by the kernels that they were tried on."""


def probed_devices(
    issues: Sequence[KnownIssue], device: str, trust: Trust
) -> dict[str, list[ProbedIssue]]:
    """Try each issue that has a probe on those kernel sets of a device that it names.

    A kernel set that opens no model is told in a line, and left out.

    Args:
        issues: what is known.
        device: a device, or one with all its kernel sets.
        trust: the user's decision on its profile.

    Raises:
        UserError: there is no such device.
        InfrastructureError: no kernel set opens a model.

    """
    profiles = (
        kernel_set_devices(device, trust) if names_all(device) else [find_profile(device, trust)]
    )
    found: dict[str, list[ProbedIssue]] = {}
    lost = 0
    for profile in profiles:
        wanted = [each for each in issues if each.is_probed and profile.kernels in each.kernel_sets]
        if not wanted:
            continue
        try:
            found[profile.kernels] = _probed_on(profile, wanted)
        except EdgeFlareError as error:
            if len(profiles) == 1:
                raise
            say(Console(stderr=True), f"{profile.name}: {error}")
            lost += 1
    if lost and not found:
        raise InfrastructureError(f"{device}: none of its {lost} kernel sets could be tried")
    return found


def probed_versions(issues: Sequence[KnownIssue], versions: str) -> dict[str, list[ProbedIssue]]:
    """Try each issue that has a probe on those kernel sets of released versions that it names.

    Args:
        issues: what is known.
        versions: as the option has them.

    Raises:
        UserError: one is none, or none can be installed here.
        InfrastructureError: pip fails, or no process can be started there.

    """
    console = Console(stderr=True)
    runtimes = installed(versions)
    found: dict[str, list[ProbedIssue]] = {}
    asked = {kernels for issue in issues if issue.is_probed for kernels in issue.kernel_sets}
    kernel_sets = (*HOST_KERNELS, *(kernels for kernels in COMPILED_KERNELS if kernels in asked))
    with (
        runtime_arms(runtimes, kernel_sets, lambda line: say(console, line)) as arms,
        observe(console) as display,
    ):
        for arm in arms:
            wanted = [each for each in issues if each.is_probed and arm.kernels in each.kernel_sets]
            found[arm.name] = probed_issues(wanted, arm.arm, _counted(display, arm.name, wanted))
    return found


def _probed_on(profile: Profile, issues: Sequence[KnownIssue]) -> list[ProbedIssue]:
    name = printable(profile.name)
    with ExitStack() as stack, observe(Console(stderr=True)) as display:
        opened = open_conformance(profile, stack, lambda: False)
        return probed_issues(issues, opened.arms[0], _counted(display, name, issues))


def _counted(
    display: ProgressDisplay, name: str, issues: Sequence[KnownIssue]
) -> Callable[[int], None]:
    return lambda done: display.worked(name, done, len(issues))


def print_issues(issues: Sequence[KnownIssue], probed: Probed | None) -> None:
    """Print what is known, a row for each, with what became of it where it was tried."""
    header = ["issue", "where", "what is wrong, and what to do instead"]
    rows = [_row(issue, probed) for issue in issues]
    table = Table.of_words(header if probed is None else [*header, "here"], rows)
    print_blocks(Console(), table, Sentences([_summary(issues, probed)]))


def _row(issue: KnownIssue, probed: Probed | None) -> list[str]:
    read = f"{issue.thread}, {issue.state}, {issue.read}" if issue.thread else "no thread"
    read += "" if issue.verified else "; not verified"
    where = [f"{issue.operator or issue.arrangement} {', '.join(issue.types)}".strip()]
    where += [", ".join(issue.condition)] if issue.condition else []
    where += [f"on {', '.join(issue.kernel_sets)}"] if issue.kernel_sets else []
    where += [_versions(issue)] if issue.seen else []
    instead = f"; instead: {issue.work_around}" if issue.work_around else ""
    row = [read, "; ".join(where), f"{issue.says}{instead}"]
    return row if probed is None else [*row, _here(issue, probed)]


def _versions(issue: KnownIssue) -> str:
    """Return the versions that have it in words: the first, the last, and the first right one."""
    last = f" to {issue.seen[-1]}" if issue.seen[1:] else ""
    fixed = f", right from {issue.fixed}" if issue.fixed else ""
    return f"{issue.seen[0]}{last}{fixed}"


def _here(issue: KnownIssue, probed: Probed) -> str:
    """Return what became of an issue, by kernel set; that it has no probe, or its kernels none."""
    outcomes: dict[str, list[tuple[str, ProbeOutcome]]] = {}
    for name, several in probed.items():
        kernels, _, version = name.partition("@")
        for tried in several:
            if tried.issue is issue:
                outcomes.setdefault(kernels, []).append((version, tried.outcome))
    found = [
        f"{kernels}: {since_words(by) if by[0][0] else by[0][1]}"
        for kernels, by in outcomes.items()
    ]
    return "; ".join(found) or ("not tried" if issue.is_probed else "no probe")


def _summary(issues: Sequence[KnownIssue], probed: Probed | None) -> str:
    verified = sum(issue.verified for issue in issues)
    said = (
        f"{len(issues)} known issues, {verified} of which EdgeFlare's authors saw themselves;"
        f" {sum(issue.is_probed for issue in issues)} have a probe."
    )
    if probed is None:
        return f"{said} --probe tries these."
    tried = {id(probed_issue.issue) for several in probed.values() for probed_issue in several}
    shown = {
        id(probed_issue.issue)
        for several in probed.values()
        for probed_issue in several
        if probed_issue.outcome == "shows"
    }
    return f"{said} {len(shown)} of {len(tried)} that were tried show here."


def issue_of_operator(content: bytes, place: int, device: Provenance) -> str:
    """Return what the world knows of an operator that a device computes otherwise than the twin.

    Its settings meet an issue's condition; that this is its fault, nobody saw.

    Args:
        content: the compressed file.
        place: position of the operator.
        device: where it is so.

    Returns:
        A sentence; empty where nothing is known.

    """
    try:
        (operator,) = (read for read in read_operators(content).known if read.place == place)
    except (UserError, ValueError):  # none of it is known, or not this one
        return ""
    type_, settings = operator.reading.type, operator.reading.configuration
    facts = known_operators()[operator.operator].facts(type_, settings)
    key = FindingKey(operator.operator, type_, "device", "wrong-values", counted=True)
    issue = _faults_on(device).issue(key, (DEVICE,), [{**settings, **facts}])
    if issue is None:
        return ""
    return f"{operator.operator} there is as in {linked_issue(issue).sentence}"


def issue_of_part(part: WrongPart, device: Provenance) -> str:
    """Return what the world knows of operators that a device computes wrongly together.

    Args:
        part: the operators.
        device: where they are wrong.

    Returns:
        A sentence; empty where nothing is known.

    """
    issue = _faults_on(device).issue(part.key, (DEVICE,), (), part.arrangement)
    return "" if issue is None else f"known: {linked_issue(issue).sentence}"


def _faults_on(device: Provenance) -> KnownFaults:
    return KnownFaults(
        issues=known_issues(),
        kernels=device.kernels,
        runtime=(device.runtime, device.runtime_version),
    )


def described_issues(
    issues: Sequence[KnownIssue], probed: Probed | None
) -> list[dict[str, object]]:
    """Return all that is known as plain values."""
    return [
        {
            **asdict(issue),
            "here": None
            if probed is None
            else {
                kernels: {"outcome": tried.outcome, "detail": tried.detail}
                for kernels, several in probed.items()
                for tried in several
                if tried.issue is issue
            },
        }
        for issue in issues
    ]
