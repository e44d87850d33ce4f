"""`edgeflare inspect`: what hidden units have to do with deviations, over many inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

import typer

from edgeflare.campaign.pair_panel import open_pair
from edgeflare.cli import run_options
from edgeflare.cli.command_on_fleet import add_on_fleet
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions
from edgeflare.cli.interruptible import as_ctrl_c
from edgeflare.cli.option_values import complete_device
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.goal import Goal
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles, find_shipped_profile
from edgeflare.diagnose.inspect.hypotheses import load_hypotheses
from edgeflare.diagnose.inspect.inspect_document import (
    INSPECTION,
    InspectionResult,
    inspect_bytes,
    inspect_document,
)
from edgeflare.diagnose.inspect.inspect_pair import InspectionRequest, device_tensors, inspect_pair
from edgeflare.diagnose.inspect.inspection_figures import MOST_INPUTS, SHARE
from edgeflare.diagnose.inspect.inspection_inputs import Found
from edgeflare.diagnose.inspect.unit_behaviours import BEHAVIOURS
from edgeflare.errors import UserError, suggestion
from edgeflare.pages.facts import count_of, in_words
from edgeflare.pages.page import Block, Section, Sentences, Table
from edgeflare.pages.terminal import print_section
from edgeflare.progress import observe
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import written
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.trust import decided_by_user

HOST = "emulated-xnnpack"
"""The device that stands for the host's own kernels, where none is named."""

LEAST_SEEDS, MOST_SEEDS = 400, 2000
"""Seeds of the pair that are taken, if it has as many: in between as many as inputs, since a line
that is held out has two seeds of its own, and two inputs. 2,000 of 224 × 224 × 3 take 300 MB."""

Behaviour = Annotated[
    list[str] | None,
    typer.Option(
        "--behaviour",
        metavar="NAME",
        help=f"What units do: {', '.join(BEHAVIOURS)}; again for each further one. All of them if"
        " not given. The verdict needs error-gradient.",
    ),
]
Hypotheses = Annotated[
    list[str] | None,
    typer.Option(
        "--hypotheses",
        metavar="FILE",
        help="A Python file, or a module, with functions decorated with @hypothesis; they are"
        " tried beside the built-in ones. Its code is run. Again for each further one.",
    ),
]
Precision = Annotated[
    float,
    typer.Option(
        help="End when the 95 % interval of what the verdict rests on is no wider than this to"
        " each side: above 0, below 1.",
    ),
]
Inputs = Annotated[
    int,
    typer.Option(
        "--max-inputs",
        min=2,
        max=MOST_INPUTS,
        metavar="N",
        help="The most inputs near the boundary.",
    ),
]
RngSeed = Annotated[int, typer.Option("--rng-seed", min=0, metavar="N", help="The run seed.")]
DeviceNames = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="Look at the compressed model on this device, whose agent has to capture tensors. If"
        " not given, as XNNPACK computes it on the host. With --fleet, a class of devices.",
    ),
]

SHOWN = 5
"""Channels by share; the document has more."""

_ENDED = {
    "precise": "precise enough",
    "full": "as many as are kept",
    "inputs": "all there were",
}


@run_options.with_option_groups
def inspect(
    context: typer.Context,
    run: run_options.FoundRun,
    *,
    behaviour: Behaviour = None,
    hypotheses: Hypotheses = None,
    precision: Precision = 0.05,
    inputs: Inputs = 1600,
    rng_seed: RngSeed = 0,
    device: DeviceNames = None,
    original: run_options.Original = None,
    compressed: run_options.Compressed = None,
    function: run_options.Functions = None,
    on_fleet: FleetOptions,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Say which hidden units have to do with deviations, over many inputs near the boundary.

    Holds what each channel of the network does (its activation, its error, its error times the
    gradient of the margin) against hypotheses, such as that the input deviates. Units are chosen
    on one half of the inputs and judged on the other, and what chance gives too is printed as
    nothing. Writes RUN/inspect.json. Needs the extra `whitebox`.

    Exit codes: 0 inspected; 2 the command has to be corrected; 3 a device, a process or a disk
    failed; 130 Ctrl-C.
    """
    request = InspectionRequest(
        _behaviours(behaviour), load_hypotheses(hypotheses or ()), precision, inputs, rng_seed
    )
    request.check()
    on_fleet.require_complete()
    past = PastRun.open(run)
    pair = past.pair(original, compressed, functions=function or ())
    seeds = past.searched_seeds(pair)
    if seeds is None:
        raise UserError(
            f"the seeds that {run} searched are gone or changed, and inputs are made from them:"
            f" put {past.header.pair.seeds} back"
        )
    path = past.directory.inside(INSPECTION)
    context.with_resource(written(past.directory.path))
    if on_fleet.fleet is not None:
        return add_on_fleet("inspect", run, device, on_fleet, (INSPECTION,))
    found = [
        Found(entry.seed_id, past.directory.load_input(entry.file)) for entry in past.deviations
    ]
    profile = _profile(device, trust=trust)
    with as_ctrl_c(), observe(Console(stderr=True)) as observer, ExitStack() as stack:
        plan = _plan(past, profile, min(max(inputs, LEAST_SEEDS), MOST_SEEDS))
        opened = open_pair(replace(pair, seeds=seeds), plan, [profile], stack)
        tensors_of = None
        if device:
            tensors_of = stack.enter_context(device_tensors(opened.devices[0], opened.pair))
        inspected = inspect_pair(opened, request, found, tensors_of, observer.inspected)
    write_atomically(path, inspect_bytes(inspect_document(inspected)))
    result(path)
    print_inspection(Console(), inspected, str(run / INSPECTION))
    return 0


def _behaviours(named: Sequence[str] | None) -> tuple[str, ...]:
    """Return the behaviours that are named, each once; all where none is."""
    for name in named or ():
        if name not in BEHAVIOURS:
            raise UserError(
                f"--behaviour {name}: there is none of this name{suggestion(name, BEHAVIOURS)}:"
                f" they are {', '.join(BEHAVIOURS)}"
            )
    return tuple(dict.fromkeys(named or BEHAVIOURS))


def _profile(device: Sequence[str] | None, *, trust: bool) -> Profile:
    """Return the device to look at; without one what has the host's own kernels."""
    if not device:
        return find_shipped_profile(HOST)
    if len(device) > 1:
        raise UserError(f"inspect looks at one device, not at {len(device)}: give --device once")
    (profile,) = find_profiles(device, decided_by_user(trust))
    return profile


def _plan(past: PastRun, profile: Profile, seeds: int) -> Plan:
    """Return a plan that opens the pair as the run did, on one device, with so many of its seeds.

    How many seeds the run took for its search does not matter here.
    """
    plan = past.header.plan
    return Plan(plan.strategy, Goal(), (profile.name,), limit=seeds, ensemble=plan.ensemble[:1])


def print_inspection(console: Console, result: InspectionResult, where: str) -> None:
    """Print the verdict, the best unit for each hypothesis, and the channels with most error.

    Args:
        console: where to.
        result: what to print.
        where: the file that has everything.

    """
    blocks: list[Block] = [
        Sentences(
            [
                f"{count_of(result.inputs, 'input')}, {_ENDED[result.ended]}; figures are of those"
                " held out."
            ]
        ),
        *(_scores(result, behaviour) for behaviour in result.behaviours),
        _shares(result),
    ]
    if result.constant:
        blocks.append(Sentences([f"not tried, as constant: {', '.join(result.constant)}"]))
    blocks.append(Sentences([f"Everything is in {where}."]))
    sentence = result.verdict.sentence
    print_section(console, Section(id="inspection", title=sentence, blocks=blocks))


def _scores(result: InspectionResult, behaviour: str) -> Table:
    """Return a row for each hypothesis and a column for each measure."""
    found = [best for best in result.best if best.behaviour == behaviour]
    measures = list(dict.fromkeys(best.measure for best in found))
    cells: dict[str, dict[str, str]] = {name: {} for name in result.hypotheses}
    for best in found:
        unit = "all units"
        if best.unit is not None:
            unit = f"{result.layers[best.unit.layer].operator_index}:{best.unit.channel}"
        said = f"{best.score:.2f} {unit}" if best.beyond else "nothing"
        cells[best.hypothesis][best.measure] = said
    return Table(
        title=f"What the {behaviour} of units foretells: score and operator:channel",
        header=("hypothesis", *map(in_words, measures)),
        rows=[
            (name, *(told.get(measure, "") for measure in measures)) for name, told in cells.items()
        ],
        missed_least=("regression", "mutual information"),
    )


def _shares(result: InspectionResult) -> Table:
    rows = [
        (
            str(unit.unit.channel),
            str(result.layers[unit.unit.layer]),
            f"{unit.score:.0%}",
            f"{unit.low:.0%} to {unit.high:.0%}",
        )
        for unit in result.top_units.get(SHARE, ())[:SHOWN]
    ]
    header = ("channel", "of", "share", "95 % interval")
    return Table.of_words(header, rows, title="Shares of the margin's error")
