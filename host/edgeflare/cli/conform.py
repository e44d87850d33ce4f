"""`edgeflare conform`: whether the operators that models need are right on a device."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import typer

from edgeflare.cli import conform_options as options
from edgeflare.cli import run_options
from edgeflare.cli.command_on_fleet import (
    AskedOfEach,
    command_on_fleet,
    run_on_fleet,
)
from edgeflare.cli.conformance_launch import (
    RequestedConformance,
    conform_kernel_sets,
    run_requested_conformance,
    tabulate_kernels,
    try_conformance,
)
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.fleet_session import look_at_job
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.option_values import read_parts, read_time
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.run_options import is_matrix
from edgeflare.cli.version_launch import installed, tried_on, write_versions
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.drafts.model_reading import ModelReading, read_operators
from edgeflare.conform.finding_replay import stored_models
from edgeflare.conform.findings.accepted_findings import read_accepted
from edgeflare.conform.findings.known_issues import known_issues
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.presentation.conform_page import conform_page
from edgeflare.conform.presentation.conform_terminal import (
    listed_operators,
    print_operators,
)
from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.conform.record.conform_header import ConformRequest, Graphs
from edgeflare.conform.record.conform_journal import asked_before
from edgeflare.conform.rounds.model_figures import model_figures
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.matrix.matrix_folder import a_begun_run
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import load_pair, model_or_compressed
from edgeflare.models.seed_tensors import seed_tensors
from edgeflare.pages.terminal import print_page
from edgeflare.progress import say
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust import Trust, decided_by_user

_SEEDS: Final = 2
"""Seeds of a pair on which its compressed model is run as a whole."""


@run_options.with_option_groups
def conform(
    *,
    device: options.Devices = [options.DEFAULT_DEVICE],  # noqa: B006 - never changed
    ops: options.Ops = None,
    dtype: options.Dtype = None,
    model: options.From = None,
    graphs: options.Graphs = None,
    draw: options.Draw = options.Drawing.UNIFORM,
    time_limit: options.TimeLimit = None,
    models: options.Models = None,
    rng_seed: options.RngSeed = 0,
    accepted: options.Accepted = None,
    versions: run_options.Versions = None,
    on_fleet: FleetOptions,
    folder: run_options.RunFolder,
    dry_run: run_options.DryRun = False,
    listed: options.List = False,
    matrix: options.Matrix = False,
    as_json: options.AsJson = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Say whether the operators that models need are right on a device.

    Small models of each operator and type are drawn, and run on the device and on the host's kernel
    sets. Each answer is compared with exact arithmetic. What is wrong, crashes or hangs is named by
    operator, type and the condition under which it is, with the smallest model that shows it. In
    the last third of the time graphs are drawn of operators that are right alone, and run whole:

        edgeflare conform --device pixel
        edgeflare conform --device pixel --from model.tflite
        edgeflare conform --device pixel --ops CONV_2D,ADD --dtype int8 --time-limit 2m
        edgeflare conform --device pixel --graphs
        edgeflare conform --device pixel --accepted accepted.toml
        edgeflare conform --device pixel --versions 2.1.6,2.2.0
        edgeflare conform --matrix --versions 2.1.6,2.2.0
        edgeflare conform --list --ops CONV_2D

    Exit codes: 0 nothing that was tried is wrong that --accepted does not name; 1 something is; 2
    the command has to be corrected; 3 the device, a process or a disk failed; 130 Ctrl-C. After 3
    and 130 the run directory is valid, and the same command with --out RUN --resume goes on. So
    does a run that has ended, with a longer --time-limit.
    """
    folder.require_one_way()
    on_fleet.require_complete()
    cells = _cells(ops, dtype)
    if listed:
        if as_json:
            typer.echo(json.dumps(listed_operators(cells), indent=1))
        else:
            print_operators(Console(), cells)
        return 0
    seconds = None if time_limit is None else read_time("--time-limit", time_limit)
    if matrix:
        others = {"--device": device != [options.DEFAULT_DEVICE], "--from": model}
        others |= {"--draw": draw is not options.Drawing.UNIFORM, "--accepted": accepted}
        others |= {"--resume": folder.resume, "--dry-run": dry_run}
        _refuse_beside_matrix({**others, "--fleet": on_fleet.fleet, "--graphs": graphs is not None})
        return tabulate_kernels(cells, models, seconds, rng_seed, versions, folder, as_json=as_json)
    if on_fleet.fleet is None:
        models, seconds = _bounds(folder, device, models, seconds)
    if models is None and seconds is None:
        seconds = options.DEFAULT_SECONDS
    named = () if accepted is None else read_accepted(accepted)
    reading, about_model, seeds = None, None, None
    if model is not None:
        named_model, model = model, model_or_compressed(model)
        content = read_model_file(model)
        reading = read_operators(content, str(model))
        cells = _cells_of(reading, cells, model)
        about_model = model_figures(model.name, content, reading, cells)
        tried = _graphs(graphs, models) != "none" and on_fleet.fleet is None
        if named_model != model and tried:
            seeds = _seeds_of(named_model)
    request = ConformRequest(
        *(cells, draw.value, _graphs(graphs, models), models, seconds, rng_seed),
        model=None if about_model is None else about_model.sha256,
    )
    decided = decided_by_user(trust)
    _require_one_device(versions, device, on_fleet)
    if on_fleet.fleet is not None:
        told = () if request.model is None else (request.model,)
        command = command_on_fleet(
            AskedOfEach("conform", "conform", told), device, on_fleet, folder
        )
        return look_at_job(command) if dry_run else run_on_fleet(command)
    asked = RequestedConformance(
        request, about_model, reading, named, known_issues(), folder, seeds
    )
    if is_matrix(device):
        return conform_kernel_sets(asked, device[0], decided, dry_run=dry_run, as_json=as_json)
    return _conform_here(asked, device, decided, versions, dry_run=dry_run, as_json=as_json)


def _bounds(
    folder: run_options.RunFolder, device: Sequence[str], models: int | None, seconds: float | None
) -> tuple[int | None, float | None]:
    """Return how many models there may be and for how long; of a run that goes on as it was asked.

    None of either where nothing is said of it.
    """
    if not folder.resume or folder.out is None:
        return models, seconds
    before = asked_before(a_begun_run(folder.out) if is_matrix(device) else folder.out)
    return (
        before.models if models is None else models,
        before.time_limit_seconds if seconds is None else seconds,
    )


def _seeds_of(pair: Path) -> Values | None:
    """Return what a pair's compressed model is given on its first seeds; None of none.

    A pair whose functions are not trusted, or whose seeds are gone, has operators all the same.
    """
    try:
        return seed_tensors(load_pair(pair, seeds_option=""), _SEEDS)
    except UserError as error:
        say(Console(stderr=True), f"the model is given drawn values: {error}")
        return None


def _refuse_beside_matrix(given: Mapping[str, object]) -> None:
    """Refuse options that say nothing of a table of kernel sets.

    Args:
        given: options by their names, with what the user gave; falsy where that is nothing.

    """
    for name, value in given.items():
        if value:
            raise UserError(
                f"--matrix tries drawn models on all kernel sets of this host: leave {name} out"
            )


def _require_one_device(
    versions: str | None, device: Sequence[str], on_fleet: FleetOptions
) -> None:
    """Refuse versions beside several devices."""
    if versions is not None and (is_matrix(device) or on_fleet.fleet is not None):
        raise UserError(
            "--versions is for the findings of one device: leave it out, and try each run by"
            " `edgeflare replay RUN --versions`"
        )


def _conform_here(
    asked: RequestedConformance,
    device: Sequence[str],
    decided: Trust,
    versions: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run it on one device, and return the exit code."""
    if len(device) > 1:
        raise UserError(
            f"conform runs on one device, not on {len(device)}: give --device once, or add --fleet,"
            " on which each class has a run of its own"
        )
    (profile,) = find_profiles(device, decided)
    path = asked.folder.choose(f"conform-{profile.name.replace('/', '-')}")
    if dry_run:
        try_conformance(asked, profile, path)
        return 0
    runtimes = [] if versions is None else installed(versions)
    document = run_requested_conformance(asked, profile, path, resumed_at=path)
    if runtimes and document.findings and document.interrupted_by is None:
        found = stored_models(RunDirectory(path), document)
        tried = tried_on(found, runtimes, document.device.kernels)
        write_versions(tried, path, shown=not as_json)
    return _end(document, path, as_json=as_json)


def _graphs(asked: bool | None, models: int | None) -> Graphs:
    """Return whether graphs are tried: where nothing is said, in what time is left for them."""
    if asked is None:
        return "also" if models is None else "none"
    return "only" if asked else "none"


def _end(document: ConformDocument, path: Path, *, as_json: bool) -> int:
    """Print what the run comes to, and return the exit code."""
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(document), indent=1))
    else:
        print_page(Console(), conform_page(document), str(path))
    if document.interrupted_by is not None:
        by = INTERRUPTED_BY[document.interrupted_by]
        Console(stderr=True).print(
            f"stopped by {by}; the same command with --out {path} --resume goes on",
            markup=False,
            soft_wrap=True,
        )
        return INTERRUPTED
    result(path)
    return 1 if any(finding.is_new for finding in document.findings) else 0


def _cells(ops: str | None, dtype: str | None) -> tuple[Cell, ...]:
    operators = () if ops is None else [part.upper() for part in read_parts("--ops", ops)]
    types = () if dtype is None else [part.lower() for part in read_parts("--dtype", dtype)]
    return chosen_cells(operators, types)


def _cells_of(reading: ModelReading, cells: tuple[Cell, ...], model: Path) -> tuple[Cell, ...]:
    """Return those of some cells that a model has."""
    own = {read.cell for read in reading.known}
    found = tuple(cell for cell in cells if cell in own)
    if not found:
        has = ", ".join(sorted({f"{operator} {type_}" for operator, type_ in own}))
        raise UserError(
            f"{model} has none of the operators and types that --ops and --dtype name: it has {has}"
        )
    return found
