"""A conformance run as it was asked for on the command line, on one device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from edgeflare import __version__
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interrupt_error, interruptible
from edgeflare.cli.progress import observe
from edgeflare.cli.run_options import RunFolder
from edgeflare.conform.conform_run import ConformanceRun, run_conformance
from edgeflare.conform.drafts.model_reading import ModelReading
from edgeflare.conform.findings.known_findings import KnownFinding
from edgeflare.conform.opened_conformance import OpenedConformance, open_conformance
from edgeflare.conform.record.conform_document import ConformDocument, ModelCoverage
from edgeflare.conform.record.conform_header import (
    ConformHeader,
    ConformRequest,
    specification_digest,
)
from edgeflare.conform.record.conform_journal import begin_journal, resume_journal
from edgeflare.conform.shown.conform_terminal import look_lines
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError
from edgeflare.models.run_host import describe_host
from edgeflare.run.run_directory import RunDirectory
from edgeflare.untrusted_text import printable


@dataclass(frozen=True, slots=True)
class RequestedConformance:
    """A conformance run that was asked for.

    Attributes:
        request: what is drawn.
        model: what is known of the model that the user named; None for none.
        reading: its operators; None for none.
        known: findings that do not count.
        folder: whether the run begins anew, replaces one or goes on.

    """

    request: ConformRequest
    model: ModelCoverage | None
    reading: ModelReading | None
    known: Sequence[KnownFinding]
    folder: RunFolder


def run_requested_conformance(
    asked: RequestedConformance, profile: Profile, path: Path, resumed_at: Path
) -> ConformDocument:
    """Run it, its progress shown, and return its document.

    Args:
        asked: the run.
        profile: the device.
        path: the run directory.
        resumed_at: what the user names to go on with it.

    Raises:
        UserError: it cannot be done as it was asked for.
        InfrastructureError: a device, a process or a disk failed.

    """
    console = Console(stderr=True)
    with ExitStack() as stack, interruptible("awaiting the round under way") as interrupt:
        opened = _opened(profile, stack, console, interrupt)
        header = _header(asked.request, opened)
        if asked.folder.resume:
            journal = resume_journal(path, header)
        else:
            journal = begin_journal(path, header, overwrite=asked.folder.overwrite)
        stack.callback(journal.close)
        run = ConformanceRun(
            header, RunDirectory(path), journal, asked.model, asked.reading, asked.known
        )
        try:
            with observe(console) as observer:
                return run_conformance(run, opened.arms, observer, interrupt.asked_by)
        except InfrastructureError as error:
            if interrupt.asked():
                raise interrupt_error(interrupt.by) from error
            raise InfrastructureError(
                f"{error}; the same command with --out {resumed_at} --resume goes on"
            ) from error


def requested_header(asked: RequestedConformance, profile: Profile) -> ConformHeader:
    """Open the device, and return what run it would be.

    Raises:
        UserError, InfrastructureError: see `run_requested_conformance`.

    """
    with ExitStack() as stack, interruptible() as interrupt:
        return _header(asked.request, _opened(profile, stack, Console(stderr=True), interrupt))


def try_conformance(asked: RequestedConformance, profile: Profile, path: Path) -> None:
    """Open the device, and print what a run would do; nothing is written.

    Raises:
        UserError, InfrastructureError: see `run_requested_conformance`.

    """
    with ExitStack() as stack, interruptible() as interrupt:
        opened = _opened(profile, stack, Console(stderr=True), interrupt)
        header = _header(asked.request, opened)
        for line in look_lines(header, asked.model, path):
            Console().print(line, markup=False, highlight=False, soft_wrap=True)


def _opened(
    profile: Profile, stack: ExitStack, console: Console, interrupt: Interrupt
) -> OpenedConformance:
    with console.status(f"opening {escape(printable(profile.name))}"):
        return open_conformance(profile, stack, interrupt.asked)


def _header(request: ConformRequest, opened: OpenedConformance) -> ConformHeader:
    device, host = opened.provenance, describe_host(None)
    return ConformHeader(__version__, request, device, host, specification_digest())
