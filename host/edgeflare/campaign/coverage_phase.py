"""Neuron coverage of a run (`--coverage`), measured once its findings are verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.campaign import StoppedBy, run_campaign
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.pipeline import MOST_RECOVERIES
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import unpack_rows
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import ONCE
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import HostProbe, Probe, ProbeFailed, ProbeRefused
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import count_of
from edgeflare.run.finding_outcomes import sort_findings
from edgeflare.run.journal_notes import COVERAGE_KEY, ArmCoverage, NeuronCoverage
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_ids import device_of

if TYPE_CHECKING:  # imported where it is measured
    from edgeflare.whitebox.baselines.neuron_coverage import CapturedNeurons

_STREAM = 16
"""Number of the run's generator that draws other seeds."""


def search_and_cover(
    opened: OpenedPair,
) -> Callable[[CampaignContext, Interrupt], StoppedBy | None]:
    """Return the phases of a campaign whose plan may ask for neuron coverage.

    It is measured anew whenever the run goes on, since that may bring further findings; a run that
    the user stops before its end has none. It is that of all findings together, so a search of some
    seeds leaves it to the run that has all.

    Args:
        opened: the pair that is searched.

    """

    def run(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        if not context.plan.coverage:
            return run_campaign(context, interrupt)
        context.journal.note(COVERAGE_KEY, None)
        if context.plan.seed_ids is not None:
            return run_campaign(context, interrupt)
        stopped_by = run_campaign(context, interrupt)
        measured = None if context.stopped() else measure_coverage(opened, context)
        if measured is None:
            return stopped_by or interrupt.by
        context.journal.note(COVERAGE_KEY, msgspec.to_builtins(measured))
        for line in measured.notes:
            context.observer.warned(f"neuron coverage: {line}")
        return stopped_by

    return run


def measure_coverage(opened: OpenedPair, context: CampaignContext) -> NeuronCoverage | None:
    """Return the neuron coverage of a run's findings, their seeds and other seeds.

    Only which neurons are covered is kept of an input.

    Returns:
        None where the user stopped it.

    """
    inputs = CoverageInputs.of(opened, context)
    arms, notes, device_queries = [], list(inputs.notes), 0
    asked, shown = len(context.panel.arms), context.observer.covered
    for place, arm in enumerate(context.panel.arms):
        masks: dict[str, NDArray[np.bool_]] = {}
        try:
            with closing(
                CapturedArm(opened, arm, context.plan.coverage, context.recover)
            ) as captured:
                for done, (which, seed_id, input_) in enumerate(inputs.each(context), 1):
                    if context.stopped():
                        return None
                    if arm is Arm.DEVICE:
                        context.health.thermometer.wait_until_cool()
                    covered = captured.covered(input_, seed_id)
                    masks[which] = masks.get(which, covered) | covered
                    shown(place * len(inputs) + done, asked * len(inputs))
                device_queries += captured.runs if arm is Arm.DEVICE else 0
        except (UserError, ProbeFailed) as why:
            notes.append(f"the {arm.value} is left out: {why}")
            shown((place + 1) * len(inputs), asked * len(inputs))
        else:
            arms.append(_figures(arm, masks))
    return NeuronCoverage(
        thresholds=context.plan.coverage,
        seeds=len(inputs.seeds),
        findings=len(inputs.findings),
        others=len(inputs.others),
        device_queries=device_queries,
        arms=tuple(arms),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class CoverageInputs:
    """The inputs whose coverage is measured.

    Attributes:
        seeds: ids of the seeds that led to a verified finding; of all where none did.
        findings: paths of the findings in the run directory, by the ids of their seeds.
        others: ids of other seeds, as many as there are findings, or as there are.
        pool: the seeds that the ids count.

    """

    seeds: tuple[int, ...]
    findings: Mapping[int, str]
    others: tuple[int, ...]
    pool: Seeds

    @classmethod
    def of(cls, opened: OpenedPair, context: CampaignContext) -> CoverageInputs:
        """Return those of a run whose findings are verified.

        Other seeds are drawn from all that the pair has, also where the run takes some only; where
        models take something beside the input that belongs to a seed, from those of the run.
        """
        header = RunHeader.from_json(context.journal.about())
        found = sort_findings(context.journal, header)
        findings = {finding.seed_id: finding.file for finding in found.findings}
        pool, plan = context.seeds, context.plan
        if findings and not plan.choice.takes_all and not pool.fixed:
            pool = opened.inputs.load(opened.pair.seeds, classes=opened.pair.classes)
        left = [seed_id for seed_id in pool.seed_ids if seed_id not in findings]
        rng = np.random.default_rng([plan.rng_seed, 0, _STREAM])
        others = rng.permutation(left)[: len(findings)].tolist()
        seeds = tuple(findings) or tuple(context.seeds.seed_ids)
        return cls(seeds, findings, tuple(map(int, sorted(others))), pool)

    def __len__(self) -> int:
        return len(self.seeds) + len(self.findings) + len(self.others)

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of them: that there are too few other seeds."""
        if len(self.others) == len(self.findings):
            return ()
        return (
            f"the pair has {count_of(len(self.others), 'other seed')}, fewer than"
            f" {count_of(len(self.findings), 'finding')}",
        )

    def each(self, context: CampaignContext) -> Iterator[tuple[str, int, Input]]:
        """Yield each input, with its set (an attribute) and the id of its seed."""
        for seed_id in self.seeds:
            yield "seeds", seed_id, self.pool.input_of(seed_id)
        for seed_id, path in self.findings.items():
            yield "findings", seed_id, context.directory.load_input(path)
        for seed_id in self.others:
            yield "others", seed_id, self.pool.input_of(seed_id)


def _figures(arm: Arm, masks: Mapping[str, NDArray[np.bool_]]) -> ArmCoverage:
    """Return the shares; `masks` are (thresholds, neurons) each, by the set of the inputs."""
    seeds = masks["seeds"]

    def share(which: str) -> tuple[float, ...] | None:
        found = masks.get(which)
        return None if found is None else tuple((seeds | found).mean(axis=1).tolist())

    return ArmCoverage(
        arm=arm,
        neurons=seeds.shape[1],
        seeds=tuple(seeds.mean(axis=1).tolist()),
        with_findings=share("findings"),
        with_others=share("others"),
    )


class CapturedArm:
    """An arm that is asked about one input at a time. Its models are opened when they are needed.

    Attributes:
        runs: how often it answered.

    """

    def __init__(
        self,
        opened: OpenedPair,
        arm: Arm,
        thresholds: Sequence[float],
        recover: Callable[[int], None],
    ) -> None:
        """Take an arm.

        Args:
            opened: the pair.
            arm: one of its arms.
            thresholds: thresholds at which neurons count as covered.
            recover: brings a lost device back, by its place among the devices, or raises
                InfrastructureError.

        Raises:
            ProbeRefused: the arm's model is no `.tflite` file, or not called once for each input.
            UserError: the file cannot be read as one.

        """
        pair = opened.pair
        source = Path(str(pair.original if arm is Arm.ORIGINAL else pair.executed))
        if source.suffix.lower() != ".tflite":
            raise ProbeRefused("its layers are seen only if it is a .tflite file")
        if pair.interface.invocation != ONCE:
            raise ProbeRefused(
                "the layers of a model with a state, frames, shapes or a signature of its own are"
                " not seen"
            )
        self.runs = 0
        self._opened, self._arm, self._thresholds = opened, arm, thresholds
        self._recover = recover
        self._content = read_model_file(source)
        self._graph = Graph(self._content, source.name)
        self._model = opened.panel.host(Arm.TWIN if arm is Arm.DEVICE else arm)
        if arm is Arm.DEVICE and opened.stages is not None:
            self._model = opened.stages.on_device
        self._stack = ExitStack()
        self._places: dict[int, CapturedNeurons] = {}

    def covered(self, input_: Input, seed_id: int) -> NDArray[np.bool_]:
        """Return which neurons an input covers: (thresholds, neurons).

        Args:
            input_: the input, of the pair's domain.
            seed_id: the seed that it comes from, which decides the device.

        Raises:
            ProbeRefused: nothing can be captured here, or not the same on all devices.
            ProbeFailed: the model gives no answer.

        """
        rows = self._model.rows(input_[None], [seed_id])
        arrays = unpack_rows(self._model.evaluator.signature.inputs, rows)
        index = device_of(seed_id, len(self._opened.devices)) if self._arm is Arm.DEVICE else 0
        for _ in range(MOST_RECOVERIES):
            try:
                found = self._neurons(index).covered([array[0] for array in arrays])
            except DeviceLost:
                self._places.pop(index, None)
                self._recover(index)
            except InfrastructureError as refused:
                if self._arm is Arm.DEVICE:  # its agent is there, and captures no model so large
                    raise ProbeRefused(str(refused)) from refused
                raise
            else:
                self.runs += 1
                return found
        raise InfrastructureError(
            f"the same input lost the device {MOST_RECOVERIES} times in a row, while its tensors"
            " were captured"
        )

    def close(self) -> None:
        """Close the models that were opened."""
        self._stack.close()

    def _neurons(self, index: int) -> CapturedNeurons:
        from edgeflare.whitebox.baselines.neuron_coverage import (  # noqa: PLC0415 - seldom asked for
            CapturedNeurons,
        )

        if index not in self._places:
            probe = self._stack.enter_context(closing(self._probe(index)))
            neurons = CapturedNeurons(self._graph, probe, self._thresholds)
            if any(neurons.count != other.count for other in self._places.values()):
                raise ProbeRefused("the devices do not capture the same tensors")
            self._places[index] = neurons
        return self._places[index]

    def _probe(self, index: int) -> Probe:
        if self._arm is Arm.DEVICE:
            return self._opened.devices[index].probe(self._content, capture=True)
        kernels = TWIN_KERNELS if self._arm is Arm.ORIGINAL else self._opened.ensemble[0]
        return HostProbe(self._content, kernels, capture=True)
