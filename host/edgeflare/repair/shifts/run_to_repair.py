"""What shifts are fitted to of a run: seeds to fit with, and the triggers found from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import FAILURES
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.errors import UserError
from edgeflare.repair.shifts.repair_samples import FOLDS, Labels, Samples
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_document import Finding
from edgeflare.tasks.classification import ClassDecoder, class_decoder

LEAST_TRIGGERS = 5 * FOLDS
"""Five in each fold: with fewer, a fold may have none of most classes."""

ARMS = (Arm.ORIGINAL, Arm.DEVICE)
"""The arms that a repair asks: a repairer corrects the outputs of the device."""


@dataclass(frozen=True, slots=True)
class RunToRepair:
    """What shifts are fitted to of a run: its triggers from the seeds to fit with, and these seeds.

    Attributes:
        past: the run.
        opened: the run's models, all its seeds, and the devices.
        entries: findings that deviate from the original and begin at a seed to fit with, in the
            order of their seeds.
        seed_images: (k, H, W, C) uint8, their seeds.
        trigger_images: (k, H, W, C) uint8, their triggering inputs.
        rng_seed: seed of the generators of all that is drawn.

    """

    past: PastRun
    opened: OpenedPair
    entries: Sequence[Finding]
    seed_images: NDArray[np.uint8]
    trigger_images: NDArray[np.uint8]
    rng_seed: int

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
        raw = np.frombuffer(b"".join(query.raw[Arm.DEVICE] for query in answered), tensor.dtype)
        return Samples(
            np.asarray(seed_ids, np.int64),
            np.asarray(seed_labels, np.int64),
            np.array([query.outcome[Arm.ORIGINAL].decision for query in answered], np.int64),
            raw.reshape(len(answered), self.decoder.choices),
            tensor,
        )


def run_to_repair(
    past: PastRun, opened: OpenedPair, fit: NDArray[np.int64], rng_seed: int
) -> RunToRepair:
    """Return what shifts are fitted to of a run.

    Args:
        past: the run.
        opened: pair of the run with all seeds that it had, and the devices, the run's own or
            others.
        fit: positions of the seeds to fit with.
        rng_seed: seed of the generators of all that is drawn.

    Raises:
        UserError: too few triggers are from these seeds, or a file that the run stored is gone.

    """
    there, place = set(fit.tolist()), past.header.place
    entries = [
        finding
        for finding in past.document.findings
        if place(finding.seed_id) in there and _deviates(finding)
    ]
    require_enough(len(entries), str(past.directory.path))
    for entry in entries:
        past.files(entry)  # raises where a file is not what was stored
    triggers = np.stack([past.directory.load_input(entry.file) for entry in entries])
    seeds = opened.seeds.inputs[[place(entry.seed_id) for entry in entries]]
    return RunToRepair(past, opened, entries, seeds, triggers, rng_seed)


def require_enough(triggers: int, where: str) -> None:
    """Refuse to repair with too few triggers."""
    if triggers < LEAST_TRIGGERS:
        raise UserError(
            f"{where} has {triggers} triggering inputs from the seeds to fit with, and the {FOLDS}"
            f" folds of shifts need at least {LEAST_TRIGGERS}: search from more seeds, or with more"
            " --max-queries"
        )


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The run's seeds and triggers, evaluated again on the devices to repair for.

    Attributes:
        triggers: triggering inputs of the run.
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
    devices = ", ".join(device.profile.name for device in run.opened.devices)
    require_enough(len(good), f"on {devices}, {where}")
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
    labels = [[query.outcome[arm].decision for arm in ARMS] for query in (seed, trigger)]
    (f_seed, g_seed), (f, g) = labels
    return None not in (f_seed, g_seed, f, g) and f_seed == g_seed and f != g
