"""`edgeflare survey`: how often a compressed model deviates in the field."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from typing import Final

from rich.markup import escape

from edgeflare.campaign.dry_run import DryRun, evaluate_first_seeds
from edgeflare.cli import pair_options, run_options, search_options, survey_options
from edgeflare.cli.command_on_fleet import (
    AskedOfEach,
    command_on_fleet,
    run_on_fleet,
)
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.fleet_session import look_at_job
from edgeflare.cli.interruptible import INTERRUPTED, failures_reported, interruptible
from edgeflare.cli.quiet import Quiet, result
from edgeflare.conditions.condition_choice import chosen_conditions
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.core.seeds import SeedChoice
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import load_pair
from edgeflare.pages.facts import count_of
from edgeflare.pages.terminal import print_page
from edgeflare.progress import in_words, observe
from edgeflare.report.dry_run_lines import heading, looked_lines
from edgeflare.report.interface_lines import interface_lines
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_warnings import undelegated
from edgeflare.survey.gates.gate_judgement import STATE_WORDS
from edgeflare.survey.presentation.condition_preview import show_conditions
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_words import ending
from edgeflare.survey.rare_events.rare_phase import rare_plan
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.survey.record.survey_journal import require_survey
from edgeflare.survey.record.survey_plan import ENDED_KEY
from edgeflare.survey.survey_look import SurveyLook, SurveyProgress, look_at, progress_of
from edgeflare.survey.survey_preparation import SurveyRequest, load_baseline, open_survey
from edgeflare.survey.survey_run import (
    Survey,
    begin_survey,
    resume_survey,
    run_survey,
    survey_run_plan,
)
from edgeflare.trust import decided_by_user
from edgeflare.untrusted_text import printable

_SHORT: Final = 10.0
"""Seconds below which each counts."""


@run_options.with_option_groups
def survey(
    pair: pair_options.PairOrInputs = None,
    original: pair_options.Original = None,
    compressed: pair_options.Compressed = None,
    *,
    preprocessing: pair_options.Preprocessing,
    device: search_options.Devices = ["emulated-builtin"],  # noqa: B006 - never changed
    inputs: survey_options.Inputs = None,
    limit: survey_options.Limit = None,
    first: survey_options.First = None,
    conditions: survey_options.Conditions = None,
    severities: survey_options.Severities = None,
    groups: survey_options.Groups = None,
    show: survey_options.Show = None,
    ends: survey_options.SurveyEnds,
    baseline: survey_options.Baseline = None,
    ensemble: survey_options.Ensemble = None,
    rng_seed: survey_options.RngSeed = 0,
    on_fleet: FleetOptions,
    baseline_lies_at: survey_options.BaselineLiesAt = None,
    folder: run_options.RunFolder,
    dry_run: run_options.DryRun = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Estimate how often a compressed model on its device decides differently in the field.

    Original and twin answer all inputs under natural conditions on the host. The device answers a
    sample, drawn where it may surprise, until the rate is known to the precision asked for, or all
    gates are decided, or its queries or its time are spent:

        edgeflare survey PAIR --device pixel --inputs test.npz --dry-run
        edgeflare survey PAIR --device pixel --inputs test.npz
        edgeflare survey PAIR --inputs test.npz --conditions weather --severities 3
        edgeflare survey PAIR --inputs test.npz --gate 'rate<0.01 under noise'
        edgeflare survey PAIR --inputs test.npz --baseline runs/before

    Its run directory has survey.json with the rates. The deviating inputs are findings, which
    `edgeflare explain`, `replay`, `export` and `repair` take.

    Exit codes: 0 no gate was given, or all hold; 1 a gate does not hold, or is undecided; 2 the
    command has to be corrected; 3 a device, a process or a disk failed; 130 Ctrl-C. After 3 and
    130 the run directory is valid, and the same command with --out RUN --resume goes on. So does a
    survey that has ended, with more --device-queries, a longer --time-limit or a smaller
    --precision: it may decide a gate that is undecided.
    """
    folder.require_one_way()
    on_fleet.require_complete()
    if folder.resume and folder.out is not None and on_fleet.fleet is None:
        require_survey(folder.out, "--out, or leave out --resume to begin one")
    bounds = ends.bounds()
    at = survey_options.severities_of(conditions, severities)
    decided = decided_by_user(trust)
    profiles = [] if on_fleet.fleet is not None else find_profiles(device, decided)
    kernels, elsewhere = read_ensemble(ensemble)
    if pair is None:
        _require_models(compressed, inputs)
    if show is not None:
        _require_show_alone(show, folder, on_fleet, dry_run=dry_run)
    given = preprocessing.settings(original, None if inputs is None else str(inputs), compressed)
    loaded = load_pair(pair, given, decided, "--inputs")
    chosen = chosen_conditions(loaded.interface.domain_name, conditions, at)
    if show is not None:
        show_conditions(show, loaded, chosen, rng_seed, own_inputs=inputs is not None)
        Console().print(str(show), markup=False, highlight=False, soft_wrap=True)
        return 0
    earlier = None if baseline is None else load_baseline(baseline, baseline_lies_at)
    if on_fleet.fleet is not None:
        told, of = (loaded.fingerprint(),), f"{loaded.folder_name}-survey"
        each = AskedOfEach("survey", of, told, baseline=baseline)
        command = command_on_fleet(each, device, on_fleet, folder)
        return look_at_job(command) if dry_run else run_on_fleet(command)
    request = SurveyRequest(chosen, bounds, groups, inputs is not None, earlier)
    names = tuple(profile.name for profile in profiles)
    plan = survey_run_plan(loaded, names, rng_seed, SeedChoice(limit, first), kernels, elsewhere)
    path = folder.choose(f"{loaded.folder_name}-survey")
    console = Console(stderr=True)
    with ExitStack() as stack:
        with console.status(
            f"opening {escape(printable(loaded.name))} on {escape(', '.join(names))}"
        ):
            opened = open_survey(loaded, plan, request, profiles, stack)
        if dry_run:
            _print_look(opened, folder, path)
            return 0
        document, surveyed, had_ended = _run(opened, folder, path, stack, console)
    if surveyed is None or document.stopped_by in INTERRUPTED_BY:
        return _interrupted(path, INTERRUPTED_BY[document.stopped_by or ""])
    print_page(Console(), survey_page(surveyed, where=str(path)), str(path))
    if had_ended:
        said = f"no further item was asked, since the survey had ended: {ending(surveyed)}"
        Console().print(said, markup=False, highlight=False, soft_wrap=True)
    result(path)
    return _exit_code(surveyed)


def _require_models(compressed: str | None, inputs: Path | None) -> None:
    """Refuse a pair that is not given by a folder, and not by its model and inputs either."""
    if compressed is None:
        raise UserError(
            "name a pair: a folder that holds a pair.toml, or --compressed and --inputs"
        )
    if inputs is None:
        raise UserError("a pair that is given by --compressed has no seeds: give --inputs")


def _interrupted(path: Path, by: str) -> int:
    """Say how to go on, and return the exit code."""
    Console().print(
        f"stopped by {by} before its end; the same command with --out {path} --resume goes on",
        markup=False,
        soft_wrap=True,
    )
    return INTERRUPTED


def _print_look(opened: Survey, folder: run_options.RunFolder, path: Path) -> None:
    """Print what would be asked, and what the first inputs show."""
    progress = progress_of(opened, path) if folder.resume else None
    first = evaluate_first_seeds(opened.opened)
    Console().print(heading(opened.header))
    for line in _look_lines(opened, look_at(opened), first, path, progress):
        Console().print(line, markup=False, highlight=False, soft_wrap=True)


def _require_show_alone(
    show: Path, folder: run_options.RunFolder, on_fleet: FleetOptions, *, dry_run: bool
) -> None:
    """Refuse --show where something else is asked too, or where its file is there already."""
    for option, given in (
        ("--dry-run", dry_run),
        ("--out", folder.out is not None),
        ("--resume", folder.resume),
        ("--fleet", on_fleet.fleet is not None),
    ):
        if given:
            raise UserError(f"--show writes a page and surveys nothing: leave out {option}")
    if os.path.lexists(show) and not folder.overwrite:
        raise UserError(f"{show} is there already: replace it with --overwrite, or name another")


def _run(
    opened: Survey, folder: run_options.RunFolder, path: Path, stack: ExitStack, console: Console
) -> tuple[RunDocument, SurveyDocument | None, bool]:
    """Begin the survey, or go on with it, and run it; return also whether it had ended before."""
    if folder.resume:
        directory, journal = resume_survey(opened, path)
    else:
        directory, journal = begin_survey(opened, path, overwrite=folder.overwrite)
    stack.callback(journal.close)
    had_ended = journal.about().get(ENDED_KEY) is not None
    with (
        failures_reported(directory, directory.path),
        observe(console) as observer,
        interruptible("awaiting what was asked") as interrupt,
    ):
        document, surveyed = run_survey(
            opened, journal, observer=observer, survey_observer=observer, interrupt=interrupt
        )
    return document, surveyed, had_ended


def _exit_code(document: SurveyDocument) -> int:
    """Return 1 where a gate does not hold or is undecided, and say so."""
    failed = [gate for gate in document.gates if gate.state != "pass"]
    if not failed:
        return 0
    said = "; ".join(f"{gate.name} is {STATE_WORDS[gate.state]}" for gate in failed)
    Console().print(f"exit code 1: {said} (--gate)", markup=False, soft_wrap=True)
    return 1


def _look_lines(
    survey: Survey,
    look: SurveyLook,
    first: DryRun,
    path: Path,
    progress: SurveyProgress | None = None,
) -> Iterator[str]:
    """Yield what a survey would do, and what that would take.

    Args:
        survey: ready to be run.
        look: what it would take.
        first: what the first inputs show, unchanged.
        path: path of the run directory that it would write.
        progress: how far it has come, where it is to be gone on with.

    """
    if progress is not None:
        yield _gone_on_with(survey, progress)
    if progress is None or not progress.ended:
        yield from _asked(survey, look)
    yield from interface_lines(survey.header)
    yield from looked_lines(first, "input")
    doing = "write" if progress is None else "go on with"
    yield f"would {doing} {path}; nothing was written"
    notes = (*survey.opened.pair.notes, *survey.opened.seeds.notes)
    for note in (*notes, *first.warnings, *undelegated(survey.header.devices)):
        yield f"warning: {note}"


def _asked(survey: Survey, look: SurveyLook) -> Iterator[str]:
    """Yield what would be asked, and what that would take."""
    yield f"{_surveyed(survey)}, {_about(look.host_seconds)} on the host"
    if cells := survey.plan.cells_in_words:
        yield cells
    yield (
        f"at most {count_of(look.most_queries, 'device query', 'device queries')} of about"
        f" {look.device_seconds * 1e3:.3g} ms, in all"
        f" {_about(look.device_seconds * look.most_queries)}"
    )
    yield from _ends(survey, look)
    if survey.plan.rare_queries is not None:
        rare = rare_plan(survey.plan.rare_queries, survey.plan.confidence)
        yield (
            f"then rare events, about {rare.device_queries:,} device queries more, and at least"
            f" about {rare.least_for_a_shell} for each shell: the rarer the event, the more shells"
        )


def _gone_on_with(survey: Survey, progress: SurveyProgress) -> str:
    """Say how far a survey has come; what follows is said of all of it."""
    done = (
        f"the host has answered {progress.host:,} of {count_of(len(survey.items), 'item')},"
        f" the device {progress.device:,}"
    )
    if progress.ended:
        return f"nothing further would be asked: {done}: it has ended"
    return f"goes on: {done}"


def _surveyed(survey: Survey) -> str:
    inputs = count_of(len(survey.items.inputs), "input")
    items = count_of(len(survey.items), "item")
    conditions = len(survey.items.conditions)
    if not conditions:
        return f"{inputs} as they are: {items}"
    cells = count_of(len(survey.items.cells) - 1, "cell")
    return (
        f"{inputs}, unchanged and under {count_of(conditions, 'condition')} in"
        f" {cells} of condition and severity: {items}"
    )


def _ends(survey: Survey, look: SurveyLook) -> Iterator[str]:
    """Yield what ends the survey before all is asked that may be."""
    plan = survey.plan
    if survey.gates.gates:
        gates = "; ".join(map(survey.gates.name_of, survey.gates.gates))
        yield f"asked until each gate is decided: {gates}"
    if plan.precision is not None:
        yield (
            f"asked until the over-all rate is known to ±{100 * plan.precision:g} points: plain"
            f" sampling needs {look.plain_queries:,} queries for that at a rate of 5 %, and this"
            " fewer the better the twin foretells the device"
        )
    if plan.time_limit_seconds is not None:
        yield f"asked for {plan.time_limit_seconds:,g} s at most"


def _about(seconds: float) -> str:
    if seconds < _SHORT:
        return f"about {ceil(seconds)} s" if seconds > 1.0 else "less than 1 s"
    return f"about {in_words(seconds)}"
