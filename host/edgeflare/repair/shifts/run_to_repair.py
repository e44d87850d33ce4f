"""The run that is to be repaired: its models and devices, opened; its seeds and triggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.core.answer import FAILURES
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input import Input
from edgeflare.core.seeds import Seeds
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.pair_input import DEFAULT_DOMAIN
from edgeflare.models.pair_interface import DEFAULT_TASK
from edgeflare.repair.shifts.fold_assignment import FOLDS
from edgeflare.repair.shifts.repair_samples import Labels, Samples
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import Finding
from edgeflare.tasks.classification import ClassDecoder, class_decoder

LEAST_TRIGGERS = 5 * FOLDS
"""Five in each fold: with fewer, a fold may have none of most classes."""

ARMS = (Arm.ORIGINAL, Arm.DEVICE)
"""The arms that a repair asks: a repairer corrects the outputs of the device."""


@dataclass(frozen=True, slots=True)
class RunToRepair:
    """A run whose deviations are to be repaired, opened.

    Attributes:
        past: the run.
        opened: its models and the devices.
        entries: its findings that deviate from the original, in the order of their seeds.
        seed_images: (k, H, W, C) uint8, their seeds.
        trigger_images: (k, H, W, C) uint8, their triggering inputs.

    """

    past: PastRun
    opened: OpenedPair
    entries: Sequence[Finding]
    seed_images: NDArray[np.uint8]
    trigger_images: NDArray[np.uint8]

    @property
    def seed_ids(self) -> Labels:
        """(k,) the seeds' ids."""
        return np.array([entry.seed_id for entry in self.entries], np.int64)

    @property
    def decoder(self) -> ClassDecoder:
        """How the device's raw outputs are read."""
        return class_decoder(self.opened.panel.reading.decoders[Arm.DEVICE])

    def ask(self, images: Sequence[Input], seed_ids: Sequence[int]) -> Iterator[EvaluatedQuery]:
        """Ask original and device about images, and yield the answers in order.

        Args:
            images: the images, each (H, W, C) uint8.
            seed_ids: the seed that each image was made from.

        Raises:
            InfrastructureError: a device or a worker process is lost for good.

        """
        return self.opened.evaluate(images, seed_ids, ARMS)

    def samples(
        self,
        answered: Sequence[EvaluatedQuery],
        seed_ids: Sequence[int] | Labels,
        seed_labels: Sequence[int] | Labels,
    ) -> Samples:
        """Return answers as samples; none of them may be a failure."""
        tensor = self.decoder.tensor
        raw = np.frombuffer(b"".join(one.raw[Arm.DEVICE] for one in answered), tensor.dtype)
        return Samples(
            np.asarray(seed_ids, np.int64),
            np.asarray(seed_labels, np.int64),
            np.array([one.outcome[Arm.ORIGINAL].decision for one in answered], np.int64),
            raw.reshape(len(answered), self.decoder.choices),
            tensor,
        )


def open_run_to_repair(
    past: PastRun, pair: Pair, profiles: Sequence[Profile], stack: ExitStack
) -> RunToRepair:
    """Open a run whose deviations are to be repaired.

    Args:
        past: the run.
        pair: as `past.pair` returns it.
        profiles: the devices, the run's own or others.
        stack: closes what is opened.

    Raises:
        UserError: the run has no original or too few triggers, or what it stored is gone.
        InfrastructureError: a device does not come up.

    """
    where = past.directory.path
    if pair.original is None:
        raise UserError(
            f"{where} has no original model to repair towards (--find"
            f" {past.header.plan.goal.find}): search with --original, and repair that run"
        )
    entries = [entry for entry in past.document.findings if _deviates(entry)]
    require_enough(len(entries), str(where))
    images: dict[str, NDArray[np.uint8]] = {}

    def load(inputs: ModelInputs) -> Seeds:
        for entry in entries:
            past.files(entry)  # raises where a file is not what was stored
        for key in ("seed_image", "image"):
            images[key] = np.stack(
                [past.directory.load_input(getattr(entry, key)) for entry in entries]
            )
        if images["image"].shape[1:] != inputs.shape:
            raise UserError(
                f"the images of {where} are not those that its models take, {inputs.shape}"
            )
        return Seeds(images["seed_image"], None, tuple(entry.seed_image for entry in entries))

    plan = twin_alone(past.header.plan)
    opened = open_pair(pair, plan, profiles, stack, seeds_for=load)
    return RunToRepair(past, opened, entries, images["seed_image"], images["image"])


def twin_alone(plan: Plan) -> Plan:
    """Return the plan of a run that compares original and device, without an ensemble."""
    return replace(plan, goal=Goal(Find.ANY), ensemble=plan.ensemble[:1], elsewhere=())


def require_images_and_classes(past: PastRun) -> None:
    """Refuse a run that is not of a classifier of images.

    Raises:
        UserError: its inputs are no images, or the task is another one.

    """
    said = past.header.pair
    task, domain = said.get("task", DEFAULT_TASK), said.get("domain", DEFAULT_DOMAIN)
    several = len(said.get("inputs", ())) > 1
    if task == DEFAULT_TASK and domain == DEFAULT_DOMAIN and not several:
        return
    given = "several inputs" if several else f"the domain {domain}"
    raise UserError(
        f"repair moves the boundaries between the classes of images, and {past.directory.path} is"
        f" of {given} and the task {task}: convert or train the compressed model anew, and try it"
        " with replay --compressed"
    )


def require_enough(triggers: int, where: str) -> None:
    """Refuse to repair with too few triggers.

    Raises:
        UserError: there are fewer than five for each fold.

    """
    if triggers < LEAST_TRIGGERS:
        raise UserError(
            f"{where} has {triggers} triggering inputs to learn from, and {FOLDS} folds need at "
            f"least {LEAST_TRIGGERS}: search from more seeds, or with more --max-queries"
        )


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The run's seeds and triggers, evaluated again on the devices to repair for.

    Attributes:
        triggers: its triggering inputs.
        seeds: their seeds, in the same order.
        seed_images: (k, H, W, C) uint8, the seeds.
        trigger_images: (k, H, W, C) uint8, the triggers.
        seed_answers: the answers on the seeds.
        not_reproduced: number of triggers that are left out, since they no longer deviate or
            their seed does.

    """

    triggers: Samples
    seeds: Samples
    seed_images: NDArray[np.uint8]
    trigger_images: NDArray[np.uint8]
    seed_answers: Sequence[EvaluatedQuery]
    not_reproduced: int


def evaluate_run_inputs(run: RunToRepair) -> RunInputs:
    """Evaluate the run's seeds and triggers again.

    Raises:
        UserError: too few are left, or all their seeds are of one class.

    """
    ids = run.seed_ids.tolist()
    both = [*run.seed_images, *run.trigger_images]
    answered = list(run.ask(both, [*ids, *ids]))
    on_seeds, on_triggers = answered[: len(ids)], answered[len(ids) :]
    good = [
        at
        for at, (seed, trigger) in enumerate(zip(on_seeds, on_triggers, strict=True))
        if _is_pair(seed, trigger)
    ]
    where = str(run.past.directory.path)
    require_enough(len(good), f"on {_names(run)}, {where}")
    kept_ids = run.seed_ids[good]
    labels = [on_seeds[at].outcome[Arm.DEVICE].decision or 0 for at in good]
    seeds = run.samples([on_seeds[at] for at in good], kept_ids, labels)
    triggers = run.samples([on_triggers[at] for at in good], kept_ids, labels)
    if len(set(seeds.originals.tolist())) < 2:
        raise UserError(
            f"the original gives one class only on all seeds of {where} that led to a trigger:"
            " search from seeds of several classes"
        )
    return RunInputs(
        triggers,
        seeds,
        run.seed_images[good],
        run.trigger_images[good],
        [on_seeds[at] for at in good],
        len(ids) - len(good),
    )


def _deviates(entry: Finding) -> bool:
    labels = entry.labels
    return (
        entry.kind not in FAILURES
        and None not in (labels.get("original"), labels.get("device"))
        and labels["original"] != labels["device"]
    )


def _is_pair(seed: EvaluatedQuery, trigger: EvaluatedQuery) -> bool:
    """Whether both arms answered, agree on the seed and disagree on the triggering input."""
    labels = [[one.outcome[arm].decision for arm in ARMS] for one in (seed, trigger)]
    (f_seed, g_seed), (f, g) = labels
    return None not in (f_seed, g_seed, f, g) and f_seed == g_seed and f != g


def _names(run: RunToRepair) -> str:
    return ", ".join(device.profile.name for device in run.opened.devices)
