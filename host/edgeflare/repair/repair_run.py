"""The steps of a repair, from a pair's seeds to a repaired model, or to the reason for none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from msgspec import structs

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.truths import require_truths
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.run_host import describe_host
from edgeflare.repair.candidate_choice import (
    CandidateChoice,
    ChosenCandidate,
    gain_beyond,
    verdict,
)
from edgeflare.repair.candidate_store import RepairIdentity, StoredCandidates
from edgeflare.repair.device_judgement import judged_on
from edgeflare.repair.fit_inputs import fit_inputs, further_inputs, network_to_fit
from edgeflare.repair.fitting.quantizer import operators_in_float
from edgeflare.repair.judging.judgement import SetAside, candidate_answers, compared
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    SEEDS,
    JudgedSet,
    SetName,
    fresh_set,
    judged_sets,
    known_labels,
    seeds_among,
    split_seeds,
)
from edgeflare.repair.judging.repair_examples import InputToShow, shown_inputs, write_shown
from edgeflare.repair.judging.robustness import robustness
from edgeflare.repair.precision.blocks import residual
from edgeflare.repair.repair_candidate import CandidatePlan, RepairCandidate, ReportProgress
from edgeflare.repair.repair_cost import NO_LIMIT
from edgeflare.repair.repair_document import (
    OfferedCandidate,
    OnDevice,
    PairToRepair,
    RepairDocument,
    RepairedModel,
    TriedCandidate,
)
from edgeflare.repair.repair_methods import candidate_plans, packages_of_others
from edgeflare.repair.repair_output import (
    MODEL,
    ORIGINAL,
    RECIPE,
    write_document,
    write_pair,
    write_repaired,
)
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import original_file, require_seeds, tries_shifts
from edgeflare.repair.shifts.shift_candidate import shift_plan
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDevice
from edgeflare_protos import __version__


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """What came of a repair.

    Attributes:
        document: what `repair.json` says of it.
        repaired: the candidate that is to be written; None where none is.
        shown: the inputs that the document shows.

    """

    document: RepairDocument
    repaired: RepairCandidate | None = None
    shown: Sequence[InputToShow] = ()

    def write(self, folder: Path, pair: Pair) -> None:
        """Write all of it into the folder of the repair of a pair.

        Raises:
            UserError: a path in the folder leads out of it.

        """
        if self.repaired is not None:
            write_repaired(folder, self.repaired)
            own = str(folder / ORIGINAL) if ORIGINAL in self.repaired.files else pair.original
            write_pair(folder, replace(pair, original=own), pair.seeds)
        write_shown(folder, pair, self.shown)
        write_document(folder, self.document)

    def without_inputs(self) -> RepairOutcome:
        """Return the same without any input to show."""
        return replace(self, document=structs.replace(self.document, shown=()), shown=())


def repair_pair(
    pair: Pair,
    past: PastRun | None,
    profiles: Sequence[Profile],
    request: RepairRequest,
    folder: Path,
    progress: ReportProgress,
    *,
    resume: bool = False,
) -> RepairOutcome:
    """Try the candidates that are allowed, choose the best, and judge it.

    Seeds are divided: three fifths fit, one chooses, one judges. So nothing is chosen on what
    judges it. Candidates are judged on the host's kernels, the chosen one on each device too.
    The candidates that are tried are written, and nothing else.

    Args:
        pair: the pair; with a run, all its seeds.
        past: the run that names it, to whose triggers shifts are fitted; None where the user named
            the pair itself.
        profiles: the devices.
        request: the settings.
        folder: where candidates are stored; see `StoredCandidates`.
        progress: is called as the steps go on.
        resume: whether candidates that the folder holds were tried already.

    Raises:
        UserError: the request allows nothing, the pair has no fitting original or too few seeds,
            no candidate can be made of its models, or the folder holds another repair.
        EnoughTried: `progress` raised it before any candidate was tried.

    """
    candidate_plans(request)  # refuses what allows none
    original = original_file(pair, past, request)
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(past, profiles, request.limit), profiles, stack)
        require_seeds(pair.name, len(opened.seeds))
        fresh = fresh_seeds(opened, request)
        about = repair_identity(opened, past, request)
        stored = StoredCandidates(folder, about, resume=resume)
        try:
            return _repaired(opened, past, request, original, fresh, stored, progress)
        except UserError:
            if not resume:
                stored.remove()
            raise


def fresh_seeds(opened: OpenedPair, request: RepairRequest) -> Seeds | None:
    """Return the inputs of `--test`; None without.

    Raises:
        UserError: they cannot be loaded, or the models take something beside them.

    """
    if request.test is None:
        return None
    if beside := opened.inputs.fixed_names:
        raise UserError(
            f"--test has inputs that are searched, and a seed has {', '.join(beside)} beside them:"
            " leave --test away"
        )
    path = Path(request.test)
    seeds = opened.inputs.load(path, classes=opened.pair.classes)
    return require_truths(opened.panel.reading.decoders[Arm.TWIN], seeds, path)


def repair_plan(
    past: PastRun | None, profiles: Sequence[Profile], limit: int | None = None
) -> Plan:
    """Return the plan of the run, or of none, with the kernels of the devices alone.

    Args:
        past: the run; None without.
        profiles: the devices.
        limit: how many seeds are taken without a run, at most; None for all.

    """
    plan = Plan("boundary", Goal(), (), limit=limit) if past is None else past.header.plan
    return replace(
        plan,
        goal=Goal(Find.ANY),
        devices=tuple(profile.name for profile in profiles),
        # They foretell the device, whatever its runtime: no run keeps this plan.
        ensemble=(profiles[0].kernels,),  # type: ignore[arg-type]
        elsewhere=(),
    )


def _repaired(
    opened: OpenedPair,
    past: PastRun | None,
    request: RepairRequest,
    original: bytes | None,
    fresh: Seeds | None,
    stored: StoredCandidates,
    progress: ReportProgress,
) -> RepairOutcome:
    """Make the inputs, try the candidates, and judge the best one."""
    rng = np.random.default_rng(request.rng_seed)
    labels = known_labels(opened)
    split = split_seeds(labels, rng)
    inputs, ids = fit_inputs(opened, labels, split, rng)
    choose, judge = (
        judged_sets(opened, labels, rows, rng, progress=partial(progress, name))
        for name, rows in (("inputs to choose", split.choose), ("to judge", split.judge))
    )
    if fresh is not None:
        judge[FRESH] = fresh_set(opened, fresh)
    plans: list[CandidatePlan] = []
    localized = None
    if original is not None:
        network = network_to_fit(opened, original, inputs, ids, rng)
        further = further_inputs(opened, original, labels, split, request.rng_seed)
        network = replace(network, further=further)
        localized = residual(network)
        plans += candidate_plans(request, network)
    if past is not None and tries_shifts(opened.pair, past, request):
        plans.append(shift_plan(past, opened, split.fit, request))
    choice = CandidateChoice(opened, request, choose, stored, progress)
    made, pair = choice.best(plans), opened.pair
    document = RepairDocument(
        edgeflare=__version__,
        pair=PairToRepair.of(pair),
        run=None if past is None else str(past.directory.path),
        devices=tuple(map(RunDevice.of, opened.devices)),
        classes=tuple(pair.classes),
        measured_as=_measured_as(judge),
        plan=request,
        seeds=split.sizes,
        fresh_seeds=seeds_among(opened, fresh),
        residual=localized,
        candidates=tuple(made.tried),
        front=tuple(made.front),
        chosen=None if made.chosen is None else made.chosen.name,
        why=_why_none(made.tried),
    )
    return _judged(document, made, choice, judge)


def _judged(
    document: RepairDocument,
    made: ChosenCandidate,
    choice: CandidateChoice,
    sets: Mapping[SetName, JudgedSet],
) -> RepairOutcome:
    """Judge the chosen candidate on inputs that nothing was chosen on, and on each device.

    Of the best one beyond the limits is said what it would give where it gains more there, too.
    """
    chosen, opened = made.chosen, choice.opened
    if chosen is None:
        return RepairOutcome(structs.replace(document, offered=_offered(made, opened, sets)))
    after = candidate_answers(chosen.content, opened, sets)
    if isinstance(after, SetAside):
        why = f"{chosen.name} is set aside on the inputs that judge: {after.reason}"
        offered = _offered(made, opened, sets)
        return RepairOutcome(structs.replace(document, why=why, offered=offered))
    judgement, shown = compared(sets, after), shown_inputs(sets, after)
    on_devices = _on_devices(choice, chosen, sets, after)
    written, why = verdict(judgement, on_devices)
    attacked = None
    if document.plan.robustness:
        choice.progress("robustness", 0, 1)
        before = read_model_file(opened.pair.compressed)
        attacked = robustness(before, chosen.content, opened, sets[SEEDS])
    document = structs.replace(
        document,
        judged=judgement,
        shown=tuple(input_to_show.shown for input_to_show in shown),
        on_devices=on_devices,
        robustness=attacked,
        written=written,
        why=why,
        repaired=_repaired_model(document, chosen, choice) if written else None,
        offered=_offered(made, opened, sets, after if written else None),
    )
    return RepairOutcome(document, chosen if written else None, shown)


def _measured_as(sets: Mapping[SetName, JudgedSet]) -> str | None:
    answer = sets[SEEDS].original[0]
    return None if answer.counted else answer.measured_as


def _why_none(tried: Sequence[TriedCandidate]) -> str:
    """Return why no candidate is chosen, where none is."""
    judged = [(candidate, candidate.sets) for candidate in tried if candidate.sets is not None]
    if judged and not any(input_set.before.deviating for input_set in judged[0][1].by_set.values()):
        return "nothing deviates on the inputs to choose by, so that there is nothing to repair"
    if judged and all(candidate.needs for candidate, _ in judged):
        return "the limits exclude every candidate"
    within = " within the limits" if any(candidate.needs for candidate in tried) else ""
    return f"no candidate{within} surely gains on the inputs to choose by"


def _offered(
    made: ChosenCandidate,
    opened: OpenedPair,
    sets: Mapping[SetName, JudgedSet],
    written: Mapping[SetName, Sequence[Answer]] | None = None,
) -> OfferedCandidate | None:
    """Judge the best candidate beyond the limits; None where there is none, or no sure gain.

    Args:
        made: what was chosen.
        opened: the pair.
        sets: the inputs that judge.
        written: answers of the candidate that is written, than which it has to gain more; None
            where none is.

    """
    if made.offered is None:
        return None
    candidate, tried = made.offered
    after = candidate_answers(candidate.content, opened, sets)
    if isinstance(after, SetAside):
        return None
    judgement = gain_beyond(sets, after, written)
    if judgement is None:
        return None
    options = tuple(f"{option} {NO_LIMIT}" for option in tried.needs)
    return OfferedCandidate(candidate=tried.name, options=options, judged=judgement)


def _repaired_model(
    document: RepairDocument, chosen: RepairCandidate, choice: CandidateChoice
) -> RepairedModel:
    """Return the file that is written, and its cost on the first device.

    That is measured now where the candidate was not judged by it.
    """
    known = next(
        candidate.latency for candidate in document.candidates if candidate.name == chosen.name
    )
    before, after = map(
        operators_in_float, (read_model_file(choice.opened.pair.compressed), chosen.content)
    )
    return RepairedModel(
        **structs.asdict((known or choice.check.measured(chosen))[0]),
        file=MODEL,
        sha256=hashlib.sha256(chosen.content).hexdigest(),
        recipe=None if chosen.recipe is None else RECIPE,
        more_in_float=after > before,
        size_before_bytes=choice.check.size_before,
        size_bytes=len(chosen.content),
    )


def _on_devices(
    choice: CandidateChoice,
    chosen: RepairCandidate,
    sets: Mapping[SetName, JudgedSet],
    foretold: Mapping[SetName, Sequence[Answer]],
) -> tuple[OnDevice, ...]:
    """Evaluate the chosen candidate and the model before on each device."""
    found: list[OnDevice] = []
    devices = choice.opened.devices
    for device in devices:
        choice.progress("devices", len(found), len(devices))
        found.append(judged_on(device, chosen.content, choice.opened, sets, foretold))
    choice.progress("devices", len(found), len(found))
    return tuple(found)


def repair_identity(
    opened: OpenedPair, past: PastRun | None, request: RepairRequest
) -> RepairIdentity:
    """Return what has to be the same where a repair goes on."""
    return RepairIdentity(
        version=__version__,
        pair=opened.pair.fingerprint(),
        run=None if past is None else str(past.directory.path.resolve()),
        findings=0 if past is None else len(past.document.findings),
        devices=tuple(device.provenance for device in opened.devices),
        host=describe_host(opened.pair.original),
        request=request,
        packages=packages_of_others(request),
    )
