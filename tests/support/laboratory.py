"""Campaigns over linear models: the real engine, models small enough to run in a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from documents import Document, as_json, run_device, run_host, run_pair
from edgeflare.campaign.campaign import StoppedBy, run_campaign
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.campaign_record import run_recorded_campaign
from edgeflare.campaign.device_readings import MonitoredDevice
from edgeflare.campaign.observer import Progress, RefinementProgress
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.white_box import WhiteBox
from edgeflare.core.goal import Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.models.evaluator import Evaluator, Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.run_pair import DEFAULT_TASK
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.operator_pool import pool_names
from edgeflare.tasks.classification import ClassDecoder
from edgeflare_protos.kernel_sets import TFLiteKernels
from scripted_health import scripted_device

SIDE = 6
CLASSES = 3
SIGNATURE = Signature(
    (Tensor("image", (1, SIDE, SIDE, 1), "float32"),), (Tensor("scores", (1, CLASSES), "float32"),)
)

Phases = Callable[[CampaignContext, Interrupt], StoppedBy | None]
Invoke = Callable[[NDArray[np.generic]], NDArray[np.generic]]


class PromptModel(InProcessModel):
    """Answers before it returns, since a linear model takes less than the way to a thread."""

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        answered: Future[RawBatch] = Future()
        answered.set_result(self._run(inputs))
        return answered


def linear(weights: NDArray[np.float32], step: float = 0.0) -> Invoke:
    """A linear classifier; with a step its scores are rounded to it, as quantization does."""

    def invoke(image: NDArray[np.generic]) -> NDArray[np.generic]:
        scores = image.reshape(1, -1).astype(np.float32) @ weights
        return np.round(scores / step) * step if step else scores

    return invoke


class Watched:
    """An observer that remembers, and may stop the campaign."""

    def __init__(self, interrupt: Interrupt, stop_after: int | None = None) -> None:
        self.progress: list[Progress] = []
        self.warnings: list[str] = []
        self.refinements: list[RefinementProgress] = []
        self._interrupt = interrupt
        self._stop_after = stop_after

    def warned(self, line: str) -> None:
        self.warnings.append(line)

    def searched(self, progress: Progress) -> None:
        self.progress.append(progress)
        if self._stop_after is not None and progress.queries >= self._stop_after:
            self._stop_after = None
            self._interrupt.ask()

    def refined(self, progress: RefinementProgress) -> None:
        self.refinements.append(progress)

    def _unheeded(self, *_: object, **__: object) -> None:
        pass

    screened = tested = verified = covered = _unheeded


@dataclass
class LaboratoryDevice:
    """What a campaign asks of a device beside its answers."""

    monitored: MonitoredDevice
    index: int
    laboratory: Laboratory

    @property
    def profile(self) -> Profile:
        return self.monitored.profile

    def telemetry(self) -> Telemetry:
        return self.monitored.telemetry()

    def reopen(self, _stopped: Callable[[], bool]) -> None:
        self.laboratory.bring_back()
        self.laboratory.recovered.append(self.index)


@dataclass
class Laboratory:
    """Seeds and models, and campaigns over them.

    `members` are further kernel sets that the host runs the compressed model under, and
    `more_devices` further devices, which share the seeds with the first; `recovered` are the
    places of those that were lost and brought back, which takes as long as `bring_back`, and fails
    where that raises. `monitored` are the devices whose health is
    watched; `interface` says another task than classification.
    """

    folder: Path
    images: NDArray[np.uint8]
    models: dict[Arm, Invoke]
    members: dict[TFLiteKernels, Invoke] = field(default_factory=dict)
    more_devices: tuple[Invoke, ...] = ()
    interface: PairInterface = field(default_factory=PairInterface)
    recovered: list[int] = field(default_factory=list)
    bring_back: Callable[[], None] = lambda: None
    monitored: tuple[MonitoredDevice, ...] = ()
    plan: Plan = field(
        default_factory=lambda: Plan(
            "random",
            Goal(),
            ("laboratory",),
            max_queries=150,
            ensemble=("xnnpack",),
            max_linf=None,
            max_l2=None,
            operators=pool_names("image"),
        )
    )

    def run(
        self,
        name: str,
        *,
        chains: int = 16,
        resume: bool = False,
        stop_after: int | None = None,
        wrap_device: Callable[[Evaluator], Evaluator] = lambda evaluator: evaluator,
        phases: Phases = run_campaign,
        asked: Mapping[str, Any] | None = None,
        require: Callable[[RunJournal], None] = lambda _journal: None,
        **plan: Any,
    ) -> Document:
        """Run a campaign, or go on with one; `plan` changes fields of the laboratory's own.

        `phases` are other phases than those of a search, `asked` is what the journal says of them
        from the first, and `require` refuses to go on with a run.
        """
        wanted = replace(self.plan, ensemble=(*self.plan.ensemble, *self.members), **plan)
        with ExitStack() as stack:
            arms = {}
            for arm, invoke in self.models.items():
                model: Evaluator = stack.enter_context(closing(PromptModel(SIGNATURE, invoke)))
                arms[arm] = self._arm_model(wrap_device(model) if arm is Arm.DEVICE else model)
            members: dict[str, ArmModel] = {
                kernels: self._arm_model(
                    stack.enter_context(closing(PromptModel(SIGNATURE, invoke)))
                )
                for kernels, invoke in self.members.items()
            }
            devices = [arms.pop(Arm.DEVICE)]
            for invoke in self.more_devices:
                another = stack.enter_context(closing(PromptModel(SIGNATURE, invoke)))
                devices.append(self._arm_model(wrap_device(another)))
            opened = self.opened(Panel(arms, devices, members), wanted)
            header = self._header(wanted, opened.panel)
            if resume:
                _, journal = resume_run(self.folder / name, header, require)
            else:
                seeds = len(wanted.seed_ids or self.images)
                _, journal = begin_run(
                    self.folder / name, header, seeds, overwrite=False, asked=asked
                )
            stack.callback(journal.close)
            interrupt = Interrupt()
            self.watched = Watched(interrupt, stop_after)
            document = as_json(
                run_recorded_campaign(
                    opened,
                    wanted,
                    journal,
                    observer=self.watched,
                    interrupt=interrupt,
                    chains=chains,
                    phases=phases,
                )
            )
            self.stopped: StoppedBy | None = document["stopped_by"]
            return document

    def opened(self, panel: Panel, plan: Plan) -> OpenedPair:
        """Return the laboratory as a pair that is open."""
        devices = [
            LaboratoryDevice(
                self.monitored[i] if self.monitored else scripted_device(canary_every=0), i, self
            )
            for i in range(panel.devices)
        ]
        pair = Pair("laboratory", None, self.folder, self.folder, interface=self.interface)
        seeds = Seeds(self.images, None, tuple(map(str, range(len(self.images)))))
        return OpenedPair(
            pair,
            ModelInputs(pair.interface, SIGNATURE.inputs, "laboratory"),
            seeds,
            panel,
            cast("tuple[Device, ...]", tuple(devices)),
            plan.ensemble,
            opening_seconds=0.0,
            white_box=WhiteBox(pair, panel, seeds, "xnnpack"),
        )

    def _header(self, plan: Plan, panel: Panel) -> RunHeader:
        here = {"machine": "laboratory", "runtime": "numpy", "runtime_version": np.__version__}
        return RunHeader(
            version="test",
            pair=run_pair(name="laboratory", fingerprint="0", task=self.interface.task),
            plan=plan,
            devices=tuple(
                run_device(f"laboratory {number}", **here)
                for number in range(1 + len(self.more_devices))
            ),
            arms=panel.reading.decoders,
            classes=(),
            labels=None,
            host=run_host(**here),
            all_seeds=SeedIds.first(len(self.images)),
        )

    def _arm_model(self, evaluator: Evaluator) -> ArmModel:
        encoder = ImageEncoder(Preprocess(), SIGNATURE.input)
        if self.interface.task == DEFAULT_TASK:
            return ArmModel(evaluator, encoder, ClassDecoder((SIGNATURE.output,), 0, "logits"))
        told = ModelOutputs(
            "laboratory", SIGNATURE.outputs, frozenset(), 0, (), lambda _: RawBatch(np.empty(0))
        )
        return ArmModel(evaluator, encoder, self.interface.opened_task.decoder(told))


def untimed(document: Document) -> Document:
    """A document without its times and without what names its process."""
    totals = {
        key: value for key, value in document["totals"].items() if not key.endswith("_seconds")
    }
    entries = {
        key: [{k: v for k, v in entry.items() if k != "seconds"} for entry in document[key]]
        for key in ("deviating_seeds", "findings", "flaky", "unverified")
    }
    kept = {key: value for key, value in document.items() if key != "health"}
    return {**kept, "totals": totals, **entries}


def comparable(run: Path) -> Document:
    """Return `run.json` without its times and without what is said of its host."""
    document = untimed(json.loads((run / "run.json").read_bytes()))
    del document["warnings"]
    return document
