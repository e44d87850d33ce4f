"""`edgeflare repair`: mend what a run found, as far as that can be done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from msgspec import structs

from edgeflare.bench.grid import check_folder, claimed_folder
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.cli import pair_options, repair_options, run_options
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import (
    INTERRUPTED,
    as_ctrl_c,
    interruptible,
    resumable_work,
    stopped_by,
)
from edgeflare.cli.option_values import is_whole_number
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.repair_presentation import print_repair
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError, path_suggestion
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import FILE, Settings
from edgeflare.pages.terminal import print_section
from edgeflare.progress import observe
from edgeflare.record import folder_contents
from edgeflare.record.folder import is_free
from edgeflare.repair.candidate_store import require_same_repair
from edgeflare.repair.judging.judgement_inputs import (
    COUNT,
    known_labels,
    seeds_among,
    seeds_among_said,
    split_seeds,
)
from edgeflare.repair.page.repair_page import searched_again
from edgeflare.repair.repair_candidate import CandidatePlan, ReportProgress
from edgeflare.repair.repair_cost import DEFAULT_LIMIT
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.repair.repair_methods import allows_shifts, candidate_plans, method_of
from edgeflare.repair.repair_output import MODEL, write_document
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import (
    original_file,
    require_seeds,
    shifts_alone,
    tries_shifts,
)
from edgeflare.repair.repair_run import (
    RepairOutcome,
    fresh_seeds,
    repair_identity,
    repair_pair,
    repair_plan,
)
from edgeflare.repair.second_search import (
    FOLDER,
    require_same_ensemble,
    require_same_seeds,
    search_again,
    search_comparison,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust import Trust, decided_by_user

if TYPE_CHECKING:
    from edgeflare.repair.labelled.labelled_repair import LabelledRepair


def repair(
    context: typer.Context,
    source: repair_options.Source,
    out: repair_options.Out,
    method: repair_options.MethodOf = "auto",
    target: repair_options.TargetOf = "float",
    in_place: repair_options.InPlaceOnly = False,
    max_size: repair_options.MaxSize = DEFAULT_LIMIT,
    max_latency: repair_options.MaxLatency = DEFAULT_LIMIT,
    device: repair_options.Devices = None,
    seeds: repair_options.Seeds = None,
    limit: pair_options.Limit = None,
    test: repair_options.Test = None,
    rng_seed: repair_options.RngSeed = 0,
    rounds: repair_options.Rounds = None,
    robustness: repair_options.Robustness = False,
    slice_of: repair_options.SliceOf = None,
    steps: repair_options.Steps = None,
    suspects: repair_options.Suspects = None,
    groups: repair_options.Groups = None,
    checkpoints: repair_options.Checkpoints = None,
    again: repair_options.Again = False,
    ensemble: repair_options.Ensemble = None,
    resume: repair_options.Resume = False,
    dry_run: run_options.DryRun = False,
    original: run_options.Original = None,
    compressed: run_options.Compressed = None,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Make a compressed model decide as its original does, as far as that can be done.

    Candidates are fitted to the original on three fifths of the seeds, compared on another fifth,
    and the best of them is judged on the last: inputs near the original's decision boundary, and
    fresh ones. If it does not surely gain there, no model is written, and why is said. One that is
    larger or slower than the limits allow is not chosen; what it would give is said.
    DIR/repair.json is written either way. Needs the extra `repair`.

    Exit codes: 0 done, with a repaired model or without; 2 the command has to be corrected; 3 a
    device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the same command with --resume
    goes on; by --groups, --checkpoints or archrepair nothing is stored, it begins again without.
    """
    check_folder(out, resume=resume, holds="repair")
    fresh = None if test is None else str(test)
    request = RepairRequest(
        method,
        target,
        in_place,
        max_size,
        max_latency,
        fresh,
        rng_seed,
        limit,
        robustness=robustness,
        groups=_columns(groups),
        checkpoints=tuple(map(str, checkpoints or ())),
        slice_percent=slice_of,
        steps=steps,
        suspects=suspects,
        rounds=rounds,
    )
    request.require_limits()
    pair_alone = _is_pair(source)
    repair_options.require_learning_settings(request, pair=pair_alone, again=again, resume=resume)
    repair_options.require_architecture_settings(
        request, pair=pair_alone, again=again, resume=resume
    )
    if rounds is not None:
        _require_shifts(request, source if pair_alone else None)
    if ensemble is not None and not again:
        raise UserError("--ensemble is for --search-again: give both, or none of them")
    _require_there(source)
    decided = decided_by_user(trust)
    past = None if pair_alone else PastRun.open(source)
    if past is None:
        _require_pair_options(source, request, again=again)
        pair = _pair_of(source, original, compressed, seeds, decided)
        profiles = find_profiles(device or ["emulated-builtin"], decided)
    else:
        if seeds is not None or limit is not None:
            raise UserError("--seeds and --limit are for a pair, and a run has its own seeds")
        pair = require_same_seeds(past, past.pair(original, compressed))
        profiles = past.profiles(device, decided)
        if again:
            _require_same_search(past, device, ensemble)
    if dry_run:
        kept = out if resume and not is_free(out) else None
        planned = planned_repair(pair, past, profiles, request, kept)
        nothing = f"Nothing is done, and nothing written to {out}."
        Console().print(f"{planned} {nothing}", markup=False, highlight=False)
        return 0
    context.with_resource(claimed_folder(out, resume=resume, holds="repair"))
    repaired = _repair(pair, past, profiles, request, out, resume=resume)
    if repaired is None:
        return INTERRUPTED
    if past is None or not again or not repaired.written:
        return 0
    after = replace(pair, compressed=out / MODEL)
    return _search_again(Console(stderr=True), past, after, profiles, out, repaired)


def _require_there(source: Path) -> None:
    if not source.exists():
        like = path_suggestion(source, lambda path: _is_pair(path) or _is_run(path))
        raise UserError(
            f"there is no {source}{like}: name a run directory, or a folder with a pair.toml"
        )


def _columns(groups: str | None) -> tuple[int, ...]:
    """Return the columns that `--groups` names."""
    if groups is None:
        return ()
    found = [int(part) if is_whole_number(part) else -1 for part in groups.split(",")]
    if min(found) < 0 or len(set(found)) < len(found):
        raise UserError(f"--groups {groups!r}: expected positions of columns, as in 8 or 8,9")
    return tuple(found)


def _pair_of(
    source: Path, original: str | None, compressed: Path | None, seeds: Path | None, decided: Trust
) -> Pair:
    """Return the pair in a folder, with other files where they are named.

    Raises:
        UserError: it is not what it should be.

    """
    file, given = (None if path is None else str(path) for path in (compressed, seeds))
    settings = Settings(original=original, compressed=file, seeds=given)
    return load_pair(source, settings, decided)


def _require_pair_options(source: Path, request: RepairRequest, *, again: bool) -> None:
    """Refuse what a pair cannot do without a run."""
    if again or request.method == "shifts":
        what = "--search-again" if again else "--method shifts"
        raise UserError(f"{what} needs a run, and {source} is a pair: search it first")


def _repair(
    pair: Pair,
    past: PastRun | None,
    profiles: Sequence[Profile],
    request: RepairRequest,
    out: Path,
    *,
    resume: bool,
) -> RepairDocument | None:
    """Repair a pair, and return the document; None where stopped."""
    if shifts_alone(pair, past, request):
        sys.stderr.write(
            f"edgeflare: the original {pair.original} is no .tflite or .onnx file: of all methods"
            " shifts alone are tried, which are not fitted to its weights\n"
        )

    def work(progress: ReportProgress) -> RepairOutcome:
        if request.by_labels is not None:
            return _by_labels(request).repaired(pair, profiles, request, progress)
        with resumable_work():
            return repair_pair(pair, past, profiles, request, out, progress, resume=resume)

    kept = (
        f"the candidates that were tried are in {out}, no model is chosen; the same command with"
        " --resume goes on"
        if request.by_labels is None
        else f"nothing is kept of a repair by {request.by_labels}; the same command begins it again"
    )
    found = _worked(work, kept)
    if found is None:
        return None
    with resumable_work() if request.by_labels is None else nullcontext():
        found.write(out, pair)
    print_repair(Console(), found.document, RunDirectory(out))
    result(out)
    return found.document


def _by_labels(request: RepairRequest) -> type[LabelledRepair[Any]]:
    """Return what repairs a pair by labels."""
    if request.groups:
        from edgeflare.repair.labelled import fairness_repair  # noqa: PLC0415 - needs jax

        return fairness_repair.FairnessTuning
    if request.checkpoints:
        from edgeflare.repair.labelled import checkpoint_repair  # noqa: PLC0415 - needs jax

        return checkpoint_repair.CheckpointTuning
    from edgeflare.repair.labelled import architecture_repair  # noqa: PLC0415 - needs jax

    return architecture_repair.ArchitectureSearch


def _worked(work: Callable[[ReportProgress], RepairOutcome], kept: str) -> RepairOutcome | None:
    """Return what work makes, its progress shown; None, what is kept said, where it is stopped."""
    try:
        with as_ctrl_c(), observe(Console(stderr=True)) as observer:
            return work(observer.worked)
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"edgeflare: stopped by {stopped_by(stop)}: {kept}\n")
        return None


def _is_pair(source: Path) -> bool:
    here = source if source.is_file() else source / FILE
    return here.is_file() and not _is_run(source)


def _is_run(source: Path) -> bool:
    return RunDirectory(source).journal.exists()


def _require_same_search(past: PastRun, device: Sequence[str] | None, ensemble: str | None) -> None:
    """Refuse --search-again with other devices than the run's, or another ensemble."""
    require_same_ensemble(past, None if ensemble is None else read_ensemble(ensemble))
    if device and set(device) != set(past.header.plan.devices):
        raise UserError(
            "--search-again compares with RUN, so it asks RUN's own devices: leave --device away, "
            f"or name {', '.join(past.header.plan.devices)}"
        )


def _search_again(
    console: Console,
    past: PastRun,
    pair: Pair,
    profiles: Sequence[Profile],
    out: Path,
    document: RepairDocument,
) -> int:
    folder_contents.list_as(out, FOLDER, folder_contents.FOLDER)
    with interruptible() as interrupt:
        after = search_again(
            past, pair, profiles, out / FOLDER, lambda: observe(console), interrupt
        )
    again = search_comparison(past.document, after)
    write_document(out, structs.replace(document, search=again))
    shown = Console()
    shown.print()
    print_section(shown, searched_again(again))
    return INTERRUPTED if after.stopped_by in INTERRUPTED_BY else 0


def _require_shifts(request: RepairRequest, pair: Path | None) -> None:
    """Refuse a setting of shifts where no shifts are tried.

    Args:
        request: what is asked.
        pair: the pair that is to be repaired; None for a run.

    """
    allowed = allows_shifts(request)
    if allowed and pair is None:
        return
    said = f"{pair} is a pair" if allowed else "these options allow none"
    raise UserError(
        f"--rounds is a setting of shifts, and {said}: leave it away, or repair a run with --method"
        " shifts"
    )


def planned_repair(
    pair: Pair,
    past: PastRun | None,
    profiles: Sequence[Profile],
    request: RepairRequest,
    resumed: Path | None = None,
) -> str:
    """Open models and devices, and say in sentences what `repair_pair` would do.

    Args:
        pair: as of `repair_pair`, and so are all but the last.
        past: likewise.
        profiles: likewise.
        request: likewise.
        resumed: folder of a repair that is gone on with; None for one that begins.

    Raises:
        UserError: as by `repair_pair`, as far as that is known before anything is fitted.

    """
    if request.by_labels is not None:
        return _by_labels(request).planned(pair, profiles, request)
    plans = candidate_plans(request)
    original = original_file(pair, past, request)
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(past, profiles, request.limit), profiles, stack)
        require_seeds(pair.name, len(opened.seeds))
        repeated = seeds_among_said(seeds_among(opened, fresh_seeds(opened, request)))
        if resumed is not None:
            require_same_repair(resumed, repair_identity(opened, past, request))
        split = split_seeds(known_labels(opened), np.random.default_rng(request.rng_seed))
        names, without_jax = [], ""
        if original is not None:
            names = [
                plan.name
                if plan.instead_of is None
                else f"{plan.name} where {plan.instead_of} gains nothing within the limits"
                for plan in plans
                if not _lacks_jax(plan)
            ]
            if left_out := ", ".join(plan.name for plan in plans if _lacks_jax(plan)):
                without_jax = (
                    f" Left out, since jax is not installed: {left_out}; pip install"
                    " 'edgeflare[whitebox]'."
                )
        if tries_shifts(opened.pair, past, request):
            names.append("shifts")
        devices = [device.profile.name for device in opened.devices]
    return (
        f"{split.sizes}. Candidates: {', '.join(names)}; on {', '.join(devices)}. Each is judged on"
        f" up to {COUNT:,} inputs a set, and chosen within --max-size {request.max_size} and"
        f" --max-latency {request.max_latency}.{without_jax} {repeated}"
    ).rstrip()


def _lacks_jax(plan: CandidatePlan) -> bool:
    method = method_of(plan.method)
    return method is not None and method.differentiates and find_spec("jax") is None
