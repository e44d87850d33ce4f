"""`edgeflare explain`: why a finding deviates, and where in the network it begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs
from rich.markup import escape

from edgeflare.cli import run_options
from edgeflare.cli.command_on_fleet import add_on_fleet
from edgeflare.cli.console import Console, unless_damaged, warn
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.interruptible import INTERRUPTED, as_ctrl_c, stopped_by
from edgeflare.cli.option_values import complete_device, read_time
from edgeflare.cli.quiet import Quiet, result
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.explain_document import (
    EXPLANATIONS,
    ExplainedFinding,
    Explanations,
    PendingFindings,
    left_over,
    load_explanations,
)
from edgeflare.diagnose.explain_findings import RunToExplain
from edgeflare.diagnose.explain_findings import explain as explain_findings
from edgeflare.diagnose.explanation import Explanation, explained_finding
from edgeflare.diagnose.explanation_terminal import print_explanations
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.pages.page import Table
from edgeflare.progress import ProgressDisplay, observe
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import remove_documents, written
from edgeflare.repair.repair_requirements import can_be_repaired
from edgeflare.replay.past_run import PastRun, finding_number
from edgeflare.report.divergence_bars import divergence_bars
from edgeflare.report.html.explanation_view import explanation_view
from edgeflare.report.interface_lines import variables_in_words
from edgeflare.report.model_explorer_overlay import OverlayFiles
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding
from edgeflare.run.run_journal import RunJournal
from edgeflare.trust import decided_by_user

PICTURES = "explain"
"""The folder of the pictures in the run directory."""

Findings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FINDING",
        help="Which findings: their seeds' ids, or their files. All of them if not given.",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="Where to look, as for `edgeflare search`: one device for all findings, or all of the "
        "run's own. If not given the run's own, as far as they are shipped emulated ones; others "
        "have to be named again. With --fleet, one class.",
    ),
]
Reduce = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Where device and twin differ and no layer differs by itself, name the operators that"
        " are wrong together: the model is cut to them, in this time for each layer where that"
        " begins, such as 2m.",
        show_default="not looked for",
    ),
]
ModelExplorer = Annotated[
    bool,
    typer.Option(
        "--model-explorer",
        help="Write node data for Model Explorer too, which shows error by layer, onset and "
        "verdict on the graph: RUN/explain/*.model-explorer. To look at them: "
        "pip install ai-edge-model-explorer",
    ),
]


@run_options.with_option_groups
def explain(
    context: typer.Context,
    run: run_options.FoundRun,
    finding: Findings = None,
    *,
    device: Devices = None,
    original: run_options.Original = None,
    compressed: run_options.Compressed = None,
    function: run_options.Functions = None,
    trust: run_options.Trust = False,
    reduce: Reduce = None,
    model_explorer: ModelExplorer = False,
    on_fleet: FleetOptions,
    _quiet: Quiet = False,
) -> int:
    """Say why findings deviate, and where in the network it begins.

    Runs each finding on the original, on the twin under every kernel set of the host, and on the
    device, again and again; looks at the layers; writes RUN/explain.json, and with the extra
    `report` a picture of the divergence along the network for each finding, RUN/explain/*.svg.
    The models have to be what they were.

    Stopped by Ctrl-C or a lost device, it keeps what is explained so far; called again without
    FINDING, it goes on with the others. So it does with --fleet.

    Exit codes: 0 explained; 2 the command has to be corrected; 3 a device, a process or a disk
    failed; 130 Ctrl-C.
    """
    on_fleet.require_complete()
    reducing = None if reduce is None else read_time("--reduce", reduce)
    past = PastRun.open(run)
    _require_picture_folder(past.directory)  # before anything is asked
    context.with_resource(written(past.directory.path))
    before = unless_damaged(lambda: load_explanations(past.directory, past.header.pair.fingerprint))
    functions, everything = function or (), _chosen(past, finding or [])
    if not everything:
        Console().print(f"{escape(str(run))} found nothing: there is nothing to explain.")
        return 0
    if on_fleet.fleet is not None:
        past.pair(original, compressed, functions=functions)  # refused here, not by a host
        return add_on_fleet("explain", run, device, on_fleet, (EXPLANATIONS, f"{PICTURES}/*"))
    elsewhere = _elsewhere(past, device)
    left = set() if finding else set(left_over(before, elsewhere))
    chosen = [entry for entry in everything if entry.seed_id in left] or everything
    harmed = _harmed(past, chosen, named=bool(finding))
    everything, chosen = (
        [entry for entry in entries if entry.seed_id not in harmed]
        for entries in (everything, chosen)
    )
    pair = past.pair(original, compressed, functions=functions)
    seed_ids = (entry.seed_id for entry in chosen)
    overlays = OverlayFiles(past.directory, pair, seed_ids, wanted=model_explorer)
    subject = run_to_explain(past, pair)
    profiles = _profiles(past.profiles(device, decided_by_user(trust)), chosen, elsewhere)
    pending = PendingFindings(device=elsewhere, seed_ids=())
    if not finding:
        pending = structs.replace(pending, seed_ids=tuple(entry.seed_id for entry in chosen))
    elif before is not None:  # what an explanation of all left, perhaps on another device
        pending = before.pending
    kept = Explanations(past.directory, past.header, before, pending, elsewhere)
    session = _ExplanationsOfCall(subject, kept, overlays, everything, chosen, reducing)
    try:
        with as_ctrl_c():
            for profile, entries in profiles:
                session.explain_on(profile, entries)
    except KeyboardInterrupt as stop:
        session.show(run)
        how_far = session.how_far(run, named=bool(finding))
        sys.stderr.write(f"edgeflare: stopped by {stopped_by(stop)}: {how_far}\n")
        return INTERRUPTED
    except InfrastructureError as error:
        how_far = session.how_far(run, named=bool(finding))
        raise InfrastructureError(f"{error}; {how_far}") from error
    finally:
        kept.save()
    session.show(run)
    return 0


def _require_picture_folder(directory: RunDirectory) -> None:
    """Refuse a run directory in which no pictures can be put."""
    pictures = directory.path / PICTURES
    if pictures.exists() and not pictures.is_dir():
        raise UserError(f"{pictures} is a file, where the pictures would be: move it away")
    directory.inside(f"{PICTURES}/picture.svg")


class _ExplanationsOfCall:
    """The explanations of one call, as they come."""

    def __init__(
        self,
        subject: RunToExplain,
        kept: Explanations,
        overlays: OverlayFiles,
        everything: Sequence[Finding],
        chosen: Sequence[Finding],
        reducing: float | None,
    ) -> None:
        self._reducing = reducing
        self._subject = subject
        self._kept = kept
        self._overlays = overlays
        self._chosen = [entry.seed_id for entry in chosen]
        self._before = len(everything) - len(chosen)
        self._total = len(everything)
        self._explained: list[Explanation] = []
        self._console = Console(stderr=True)

    def explain_on(self, profile: Profile, entries: Sequence[Finding]) -> None:
        """Explain findings on one device."""
        opening = self._console.status(f"opening {escape(profile.name)}")
        opening.start()
        try:
            with connect(profile) as device:
                self._kept.asked(profile.name, device.provenance)
                opening.stop()
                with observe(self._console) as observer:
                    self._count(observer)
                    known = self._known_on(device)
                    for found in explain_findings(self._subject, entries, device):
                        explanation = known(found)
                        self._explained.append(explanation)
                        entry = explained_finding(explanation)
                        self._kept.add(entry)
                        _draw(self._subject.directory, entry, self._subject.header.classes)
                        self._overlays.write(entry)
                        self._count(observer)
        finally:
            opening.stop()

    def _known_on(self, device: Device) -> Callable[[Explanation], Explanation]:
        """Return what adds to explanations what the world knows of the operators that are named.

        With --reduce it also names those that are wrong together.
        """
        reduction: ModelReduction | None = None
        # The room of conform takes long to load.
        if self._reducing is not None:
            from edgeflare.cli.model_reduction import ModelReduction  # noqa: PLC0415

            reduction = ModelReduction(self._content, device, self._reducing)

        def known(explanation: Explanation) -> Explanation:
            onset = explanation.kernel_onset.onset
            if explanation.verdict.name != "kernel" or onset is None:
                return explanation
            from edgeflare.cli.known_issue_listing import issue_of_operator  # noqa: PLC0415

            issue = issue_of_operator(self._content, onset.operator_index, device.provenance)
            found = replace(explanation, issue=issue)
            return found if reduction is None else reduction.told(found)

        return known

    @cached_property
    def _content(self) -> bytes:
        """The compressed file as it is run; few explanations are of its operators."""
        with with_shapes_folded(self._subject.pair) as pair:
            return read_model_file(pair.executed)

    def _count(self, observer: ProgressDisplay) -> None:
        observer.explained(self._before + len(self._explained), self._total)

    def how_far(self, run: Path, *, named: bool) -> str:
        """Say what is explained, and what to type to go on; `named` findings are named again."""
        done = {explanation.finding.seed_id for explanation in self._explained}
        left = " ".join(str(seed_id) for seed_id in self._chosen if seed_id not in done)
        return (
            f"{self._before + len(done)} of {self._total} findings are explained in"
            f" {run / EXPLANATIONS}; the same command"
            + (f" with those that are left goes on: {left}" if named else " goes on")
        )

    def show(self, run: Path) -> None:
        """Print what was explained; of a single finding everything."""
        if not self._explained:
            return
        result(run / EXPLANATIONS)
        console = Console()
        self._explained.sort(key=lambda explanation: explanation.finding.seed_id)
        classes = self._subject.header.classes

        def bars(only: Explanation) -> Table:
            return divergence_bars(explanation_view(explained_finding(only), classes))

        print_explanations(console, self._explained, classes, str(run / EXPLANATIONS), bars)
        if variables := variables_in_words(self._subject.header.pair):
            console.print(f"note: {variables}", style="dim", markup=False, highlight=False)
        if self._before:
            console.print(
                f"{self._before} more were explained before, and are there too.", style="dim"
            )
        self._overlays.show(console)
        console.print(
            f"`edgeflare report {run} --html` shows findings and explanations on a page.",
            style="dim",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def run_to_explain(past: PastRun, pair: Pair) -> RunToExplain:
    """Return a run with what its journal and its pair tell of it."""
    with RunJournal.read(past.directory.journal) as journal:
        rows = journal.answers("seed")
    seeds = past.searched_seeds(pair)
    repairable = seeds is not None and can_be_repaired(pair, past, len(rows))
    as_they_come = {} if past.document.unmutated is None else rows
    return RunToExplain(past.directory, past.header, pair, as_they_come, seeds, repairable)


def _draw(directory: RunDirectory, finding: ExplainedFinding, classes: Sequence[str]) -> None:
    """Write the picture of a finding's layers, where matplotlib is installed."""
    try:
        from edgeflare.report.divergence_picture import divergence_picture  # noqa: PLC0415
    except ImportError:
        return
    view = explanation_view(finding, classes)
    name = f"{PICTURES}/{finding.seed_id:06d}.svg"
    if view.layers:
        path = directory.inside(name)
        write_atomically(
            path, divergence_picture(view, f"seed {finding.seed_id} on {finding.device}")
        )
    else:
        remove_documents(directory.path, name)


def _chosen(past: PastRun, names: Sequence[str]) -> list[Finding]:
    """Return the findings that are named, or all: those that were verified, and flaky ones."""
    document = past.document
    found = (*document.deviations, *document.flaky, *document.unverified)
    known = {entry.seed_id: entry for entry in found}
    if not names:
        return [known[seed_id] for seed_id in sorted(known)]
    chosen, files = {}, {seed_id: entry.file for seed_id, entry in known.items()}
    for name in names:
        seed_id = finding_number(name, files)
        if seed_id not in known:
            some = ", ".join(map(str, sorted(known)[:10])) or "none"
            raise UserError(
                f"{name} is no finding of {past.directory.path}: name one by its seed's id, such "
                f"as these: {some}"
            )
        chosen[seed_id] = known[seed_id]
    return [chosen[seed_id] for seed_id in sorted(chosen)]


def _harmed(past: PastRun, chosen: Sequence[Finding], *, named: bool) -> set[int]:
    """Return the seeds of findings whose files are not what was stored, with a warning for each.

    Raises:
        UserError: there is one, and it was `named`; or there are no others.

    """
    errors = {}
    for entry in chosen:
        try:
            past.files(entry)
        except UserError as error:
            errors[entry.seed_id] = error
    if errors and (named or len(errors) == len(chosen)):
        raise next(iter(errors.values()))
    for harm in errors.values():
        warn(f"{harm}; its finding is left out")
    return set(errors)


def _elsewhere(past: PastRun, devices: Sequence[str] | None) -> str | None:
    """Return the device on which all findings are to be explained; None for the run's own."""
    own = past.header.plan.devices
    if not devices or set(devices) == set(own):
        return None
    if len(devices) > 1:
        raise UserError(
            f"--device: name one device, or all of {past.directory.path}: {', '.join(own)}"
        )
    return devices[0]


def _profiles(
    profiles: Sequence[Profile], chosen: Sequence[Finding], elsewhere: str | None
) -> list[tuple[Profile, list[Finding]]]:
    """Return the devices to ask, each with its findings."""
    if elsewhere is not None:
        return [(profile, list(chosen)) for profile in profiles]
    own = [
        (profile, [entry for entry in chosen if entry.device == profile.name])
        for profile in profiles
    ]
    return [(profile, entries) for profile, entries in own if entries]
