"""What a ranking needs of each model: its size, latency and accuracy, and its searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import structs

from edgeflare.bench.grid import Grid, Watch, run_grid
from edgeflare.campaign.pair_panel import OpenedPair, host_arm, open_pair
from edgeflare.campaign.search_checks import require_searchable
from edgeflare.core.goal import Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.truths import Truths, require_truths
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import open_tflite
from edgeflare.rank.model_runs import CorrectCounts, ModelRuns, count_right, read_runs
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.folder_contents import sha256_of
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, Count, JsonValue, plain_json
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust import KEPT_ONLY, Trust

WARM_UPS = 10
"""Runs before the first that is timed, for caches and the frequency governor."""

TIMED_RUNS = 201
"""Runs of one input each, of which the median is taken."""

TIMED_SECONDS = 5.0
"""Seconds of computing after which no further run is timed: slow models need fewer runs."""

LEAST_RUNS = 11
"""Runs that are timed in any case."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """The answers of both models to a set of labelled images, counted.

    Attributes:
        images: number of the images.
        deviating: those on which the labels differ.
        tied: deviating images on which the labels differ by a tie alone.
        right: how often each model was right.

    """

    images: Count
    deviating: Count
    tied: Count
    right: CorrectCounts


@dataclass(frozen=True, slots=True)
class ModelMeasurements:
    """The measurements of one model.

    Attributes:
        size_bytes: size of the file.
        latency_seconds: median time of one input on the device, as its agent measures it.
        timed_runs: number of runs for that median.
        labelled: answers to the labelled set; None where none was named.

    """

    size_bytes: Count
    latency_seconds: Amount
    timed_runs: Count
    labelled: Labelled | None


@dataclass(frozen=True, slots=True)
class _KeptMeasurements:
    """The file in which the measurements of a model are kept, with what they depend on."""

    about: dict[str, JsonValue]
    measured: ModelMeasurements


_READER = DocumentReader(_KeptMeasurements)


def load_measurements(
    pair: Pair, plan: Plan, labelled: Path | None, kept: Path, trust: Trust = KEPT_ONLY
) -> ModelMeasurements | None:
    """Return earlier measurements of this model on this device and set; None where there are none.

    Args:
        pair: the model.
        plan: the settings of its searches, which name the device.
        labelled: a set of labelled images, or None.
        kept: the file in which the figures are kept.
        trust: the user's decision on the device's profile.

    Raises:
        UserError: a model, the labelled set or the device's profile cannot be read.

    """
    conditions = _conditions(pair, plan, labelled, trust)
    if not kept.exists():
        return None
    try:
        known = _READER.read(kept)
    except UserError as error:
        raise UserError(f"{error}; remove it, and it is measured anew") from None
    return known.measured if known.about == conditions else None


def measure(
    pair: Pair,
    plan: Plan,
    labelled: Path | None,
    kept: Path,
    stopped: Callable[[], bool],
    trust: Trust = KEPT_ONLY,
) -> ModelMeasurements | None:
    """Measure a model on its device, and keep the figures; see `load_measurements`.

    Args:
        pair: the model.
        plan: the settings of its searches, which name the device.
        labelled: a set of labelled images, or None.
        kept: the file in which the figures are kept.
        stopped: whether the user wants to stop.
        trust: the user's decision on the device's profile.

    Returns:
        The figures; None if the user stopped it.

    Raises:
        UserError: a model or the labelled set is not what it should be, or the model cannot be
            searched as the plan says.

    """
    conditions = _conditions(pair, plan, labelled, trust)
    with ExitStack() as stack:
        opened = open_models(pair, plan, labelled, stack, trust)
        require_searchable(opened, plan)  # which all models are measured before
        latency, runs = _latency(opened)
        answers = None if labelled is None else _answers(opened, plan.goal, stopped)
        if stopped():
            return None
    measured = ModelMeasurements(pair.compressed.stat().st_size, latency, runs, answers)
    write_atomically(kept, json_bytes(plain_json(_KeptMeasurements(conditions, measured))))
    return measured


def open_models(
    pair: Pair, plan: Plan, labelled: Path | None, stack: ExitStack, trust: Trust = KEPT_ONLY
) -> OpenedPair:
    """Open a pair's models with the labelled set, or else with its own seeds; see `open_pair`.

    Raises:
        UserError: the set has no labels, or something else is not what it should be.

    """
    seeds_for = None if labelled is None else partial(_load, labelled, pair.classes)
    return open_pair(pair, plan, [find_profile(plan.devices[0], trust)], stack, seeds_for)


def check_labelled(pair: Pair, labelled: Path) -> int:
    """Return how many labelled images there are, before anything is measured with them.

    Raises:
        UserError: the set cannot be read, has no labels, or none of the model's classes.

    """
    _sha256(labelled)
    with closing(open_tflite(pair.compressed, invocation=pair.interface.invocation)) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, str(pair.compressed))
        seeds = _load(labelled, pair.classes, inputs)
        decoder = host_arm(pair, str(pair.compressed), model, inputs, seeds).decoder
    with _speaking_of_the_set():
        seeds = require_truths(decoder, seeds, labelled)
        Truths.of_seeds(decoder, seeds).require(f"{labelled} tells who is right")
    return len(seeds)


def _load(labelled: Path, classes: Sequence[str], inputs: ModelInputs) -> Seeds:
    with _speaking_of_the_set():
        return inputs.load(labelled, classes=classes)


@contextmanager
def _speaking_of_the_set() -> Iterator[None]:
    """Say in a refusal of the labelled set by which option it was given."""
    try:
        yield
    except UserError as error:
        raise UserError(f"--test: {error}") from None


def _conditions(pair: Pair, plan: Plan, labelled: Path | None, trust: Trust) -> dict[str, Any]:
    """Return what the figures depend on, as plain JSON values."""
    profile = find_profile(plan.devices[0], trust)
    return {
        "models": structs.asdict(pair.model_hashes()),
        "interface": plain_json(pair.interface.described()),
        "functions": list(pair.function_hashes()),
        "device": plan.devices[0],
        "profile": plain_json(replace(profile, description="", source=None)),
        "ties": plan.goal.ties,
        "labelled": None if labelled is None else _sha256(labelled),
        **({"fold_shapes": True} if pair.fold_shapes else {}),
    }


def _sha256(labelled: Path) -> str:
    try:
        with _speaking_of_the_set():
            return sha256_of(labelled)
    except OSError as error:
        raise UserError(
            f"--test {labelled} cannot be read: {error.strerror}; give an .npz with images and "
            "labels"
        ) from None


def _latency(opened: OpenedPair) -> tuple[float, int]:
    """Return the median seconds of one input on the device, and of how many runs."""
    device, pair = opened.devices[0], opened.pair
    profile = device.profile
    with closing(
        device.open_as(pair.executed, profile.kernels, profile.threads, pair.interface.invocation)
    ) as session:
        first = opened.seeds.inputs[:1], opened.seeds.seed_ids[:1]
        one = opened.panel.host(Arm.TWIN).rows(*first)
        for _ in range(WARM_UPS):
            session.submit(one).result()
        seconds: list[float] = []
        while len(seconds) < TIMED_RUNS and not (
            len(seconds) >= LEAST_RUNS and sum(seconds) > TIMED_SECONDS
        ):
            seconds.append(session.submit(one).result().busy_seconds)
    return median(seconds), len(seconds)


def _answers(opened: OpenedPair, goal: Goal, stopped: Callable[[], bool]) -> Labelled | None:
    inputs, arms = list(opened.seeds.inputs), (Arm.ORIGINAL, Arm.DEVICE)
    evaluated = opened.evaluate(inputs, opened.seeds.seed_ids, arms, stopped)
    outcomes = [query.outcome for query in evaluated]
    if len(outcomes) < len(inputs):
        return None
    right = count_right(dict(zip(opened.seeds.seed_ids, outcomes, strict=True)), opened.truths)
    if right is None:
        raise UserError(
            "the models answer no input of which it is known what is right: look at their outputs"
        )
    deviating = sum(goal.unmutated.met(outcome) is not None for outcome in outcomes)
    tied = sum(map(goal.tied_deviation, outcomes))
    return Labelled(len(outcomes), deviating, tied, right)


KEPT = "measured.json"
"""Name of the measurements in the folder of a model's runs."""


def measure_all(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    labelled: Path | None,
    telling: Callable[[Pair], None],
    interrupt: Interrupt,
) -> list[ModelMeasurements] | None:
    """Measure each model, but those that were measured before.

    Args:
        grid: what is asked.
        pairs: the models.
        out: where their runs will lie, a folder for each.
        labelled: a set of labelled images, or None.
        telling: is told each model that is measured.
        interrupt: the user's wish to stop.

    Returns:
        The figures, in the order of the models; None if the user stopped it before.

    Raises:
        UserError: a model or the labelled set is not what it should be.

    """
    measured: list[ModelMeasurements] = []
    unchecked = labelled
    for pair in pairs:
        if interrupt.asked():
            return None
        kept = RunDirectory(out).inside(f"{pair.folder_name}/{KEPT}")
        figures = load_measurements(pair, grid.plan, labelled, kept, grid.trust)
        if figures is None:
            if unchecked is not None:
                check_labelled(pair, unchecked)
                unchecked = None
            telling(pair)
            figures = measure(pair, grid.plan, labelled, kept, interrupt.asked, grid.trust)
        if figures is None:
            return None
        measured.append(figures)
    return measured


def search_all(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    chains: int,
    watch: Watch,
    interrupt: Interrupt,
) -> list[ModelRuns] | None:
    """Search each model, but where that was done before; one that was stopped goes on.

    Args:
        grid: one strategy.
        pairs: the models.
        out: where their runs lie.
        chains: the most chains that are open at once.
        watch: shows the progress of a search.
        interrupt: the user's wish to stop.

    Returns:
        What was found, in the order of the models; None if the user stopped it before.

    Raises:
        UserError: a pair or a run is not what it should be.

    """
    done: dict[str, list[Path]] = {pair.name: [] for pair in pairs}
    for cell, _ in run_grid(grid, pairs, out, chains=chains, watch=watch, interrupt=interrupt):
        done[cell.pair.name].append(out / cell.run)
    if any(len(runs) < len(grid.rng_seeds) for runs in done.values()):
        return None
    return [read_runs(runs) for runs in done.values()]
