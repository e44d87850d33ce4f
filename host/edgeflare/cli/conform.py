"""`edgeflare conform`: whether the operators that models need are right on a device."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from edgeflare import __version__
from edgeflare.campaign.campaign import Interrupt
from edgeflare.cli import conform_options as options
from edgeflare.cli import run_options
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, interruptible
from edgeflare.cli.option_groups import with_option_groups
from edgeflare.cli.option_values import read_parts
from edgeflare.cli.progress import observe
from edgeflare.cli.quiet import Quiet, result
from edgeflare.conform.conform_run import ConformanceRun, run_conformance
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.drafts.model_reading import ModelReading, read_operators
from edgeflare.conform.findings.known_findings import read_known
from edgeflare.conform.opened_conformance import OpenedConformance, open_conformance
from edgeflare.conform.record.begun_journal import asked_before, begin_journal, resume_journal
from edgeflare.conform.record.conform_header import ConformHeader, specification_digest
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.conform.shown.conform_look import look_lines
from edgeflare.conform.shown.conform_terminal import print_conformance
from edgeflare.conform.shown.conform_words import is_new
from edgeflare.conform.shown.operator_list import listed_operators, print_operators
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.host_description import host_runtime
from edgeflare.models.tflite import check_model_file
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust.asking import decided_by_user
from edgeflare.untrusted_text import printable


@with_option_groups
def conform(
    *,
    device: options.Device = "emulated-builtin",
    ops: options.Ops = None,
    dtype: options.Dtype = None,
    model: options.From = None,
    pairs: options.Pairs = False,
    draw: options.Draw = options.Drawing.UNIFORM,
    time_limit: options.TimeLimit = None,
    models: options.Models = None,
    rng_seed: options.RngSeed = 0,
    known: options.Known = None,
    folder: run_options.RunFolder,
    dry_run: run_options.DryRun = False,
    listed: options.List = False,
    as_json: options.AsJson = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Say whether the operators that models need are right on a device.

    Small models of each operator and type are drawn, and run on the device and on the host's kernel
    sets. Each answer is compared with exact arithmetic. What is wrong, crashes or hangs is named by
    operator, type and the condition under which it is, with the smallest model that shows it:

        edgeflare conform --device pixel
        edgeflare conform --device pixel --from model.tflite
        edgeflare conform --device pixel --ops CONV_2D,ADD --dtype int8 --time-limit 2m
        edgeflare conform --device pixel --known known.toml
        edgeflare conform --list --ops CONV_2D

    Exit codes: 0 nothing is wrong that --known does not name; 1 something is; 2 the command has to
    be corrected; 3 the device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the run
    directory is valid, and the same command with --out RUN --resume goes on. So does a run that has
    ended, with a longer --time-limit.
    """
    folder.require_one_way()
    cells = _cells(ops, dtype)
    if listed:
        _list(cells, as_json=as_json)
        return 0
    seconds = None if time_limit is None else options.read_time("--time-limit", time_limit)
    if folder.resume and folder.out is not None:
        before = asked_before(folder.out)
        models = before.models if models is None else models
        seconds = before.seconds if seconds is None else seconds
    if models is None and seconds is None:
        seconds = options.DEFAULT_SECONDS
    named = () if known is None else read_known(known)
    reading, about_model = None, None
    if model is not None:
        content = _content(model)
        reading = read_operators(content, str(model))
        cells = _cells_of(reading, cells, model)
        about_model = _about(model.name, content, reading, cells)
    request = ConformRequest(
        *(cells, draw.value, pairs, models, seconds, rng_seed),
        model=None if about_model is None else about_model["sha256"],
    )
    (profile,) = find_profiles([device], decided_by_user(trust))
    path = folder.choose(f"conform-{profile.name}")
    console = Console(stderr=True)
    with ExitStack() as stack, interruptible("awaiting the round under way") as interrupt:
        with console.status(f"opening {escape(printable(profile.name))}"):
            opened = open_conformance(profile, stack, interrupt.asked)
        header = _header(request, opened)
        if dry_run:
            for line in look_lines(header.to_json(), about_model, path):
                Console().print(line, markup=False, highlight=False, soft_wrap=True)
            return 0
        if folder.resume:
            journal = resume_journal(path, header)
        else:
            journal = begin_journal(path, header, overwrite=folder.overwrite)
        stack.callback(journal.close)
        run = ConformanceRun(header, RunDirectory(path), journal, about_model, reading, named)
        document = _run(run, opened, interrupt, console)
    return _end(document, path, as_json=as_json)


def _end(document: dict[str, Any], path: Path, *, as_json: bool) -> int:
    """Print what the run comes to, and return the exit code."""
    if as_json:
        typer.echo(json.dumps(document, indent=1))
    else:
        print_conformance(Console(), document, str(path))
    if document["stopped_by"] == "interrupt":
        Console(stderr=True).print(
            f"stopped by Ctrl-C; the same command with --out {path} --resume goes on",
            markup=False,
            soft_wrap=True,
        )
        return INTERRUPTED
    result(path)
    return 1 if any(map(is_new, document["findings"])) else 0


def _run(
    run: ConformanceRun,
    opened: OpenedConformance,
    interrupt: Interrupt,
    console: Console,
) -> dict[str, Any]:
    """Run it, its progress shown.

    Raises:
        InfrastructureError: as the run raises it, with how to go on.

    """
    try:
        with observe(console) as observer:
            return run_conformance(run, opened.arms, observer, interrupt.asked)
    except InfrastructureError as error:
        if interrupt.asked():
            raise KeyboardInterrupt from error
        raise InfrastructureError(
            f"{error}; the same command with --out {run.directory.path} --resume goes on"
        ) from error


def _cells(ops: str | None, dtype: str | None) -> tuple[Cell, ...]:
    operators = () if ops is None else [one.upper() for one in read_parts("--ops", ops)]
    types = () if dtype is None else [one.lower() for one in read_parts("--dtype", dtype)]
    return chosen_cells(operators, types)


def _list(cells: tuple[Cell, ...], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(listed_operators(cells), indent=1))
    else:
        print_operators(Console(), cells)


def _content(path: Path) -> bytes:
    check_model_file(path)
    return path.read_bytes()


def _about(
    name: str, content: bytes, reading: ModelReading, cells: tuple[Cell, ...]
) -> dict[str, Any]:
    """Return what is known of the model that the user named, before any of it is run."""
    unknown: dict[tuple[str, str], list[int]] = {}
    for one in reading.unknown:
        unknown.setdefault((one.operator, one.reason), []).append(one.place)
    return {
        "file": name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "operators": len(reading.known) + len(reading.unknown),
        "distinct": sum(one.cell in cells for one in reading.distinct),
        "unknown": [
            {"operator": operator, "places": places, "why": why}
            for (operator, why), places in unknown.items()
        ],
    }


def _cells_of(reading: ModelReading, cells: tuple[Cell, ...], model: Path) -> tuple[Cell, ...]:
    """Return those of some cells that a model has.

    Raises:
        UserError: it has none of them.

    """
    own = {one.cell for one in reading.known}
    found = tuple(cell for cell in cells if cell in own)
    if not found:
        has = ", ".join(sorted({f"{operator} {type_}" for operator, type_ in own}))
        raise UserError(
            f"{model} has none of the operators and types that --ops and --dtype name: it has {has}"
        )
    return found


def _header(request: ConformRequest, opened: OpenedConformance) -> ConformHeader:
    device = opened.provenance.to_json()
    return ConformHeader(__version__, request, device, host_runtime(), specification_digest())
