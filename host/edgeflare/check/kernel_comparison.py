"""Whether a device computes the file as the host does, on inputs as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from edgeflare.campaign.dry_run import stage_differences
from edgeflare.check.answers import FIRST, Answers, changes_between, harmed_inputs
from edgeflare.check.figures.device import KernelFigures, StageFigures
from edgeflare.check.stage_settings import other_settings
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.truths import is_right
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_warnings import undelegated

_STAGED: Final = 256
"""Inputs on which the stages of a device are compared with the pair's."""


def kernel_figures(answers: Answers) -> KernelFigures:
    """Return whether the device computes the file as the host does.

    Raises:
        InfrastructureError: the device is lost.

    """
    opened = answers.opened
    device = opened.devices[0]
    twin, its = answers.of(Arm.TWIN), answers.of(Arm.DEVICE)
    stages = None
    if opened.stages is not None:
        count = min(_STAGED, len(answers.places))
        places, ids = list(answers.places[:count]), answers.seed_ids[:count]
        model = opened.stages.as_pair
        given = model.given(opened.seeds.inputs[places], ids)
        as_pair = list(model.decoder.read(model.submit(given).result()))
        stages = _stage_figures(answers, as_pair)
        twin, its = twin[:count], as_pair
    known = RunDevice(name=device.profile.name, provenance=device.provenance)
    again = [
        one.repeated(before)
        for one, before in zip(answers.repeated, answers.evaluated, strict=False)
    ]
    return KernelFigures(
        device=known,
        changes=changes_between(twin, its, answers.truths()[: len(twin)]),
        repeated=len(answers.repeated),
        unsteady=len(again) - again.count("same"),
        undecided=again.count("changed"),
        reading=None,
        stages=stages,
        warnings=tuple(undelegated([known])),
    )


def _stage_figures(answers: Answers, as_pair: Sequence[Answer]) -> StageFigures:
    own, truths = answers.of(Arm.DEVICE)[: len(as_pair)], answers.truths()[: len(as_pair)]
    opened = answers.opened
    known = [at for at, truth in enumerate(truths) if truth is not None]
    found = stage_differences(opened, min(len(opened.seeds), FIRST))
    return StageFigures(
        inputs=len(own),
        changed=sum(one.differs(other) for one, other in zip(own, as_pair, strict=True)),
        labelled=len(known),
        right=sum(is_right(own[at], truths[at]) for at in known),
        right_as_pair=sum(is_right(as_pair[at], truths[at]) for at in known),
        harmed=len(harmed_inputs(as_pair, own, truths)),
        helped=len(harmed_inputs(own, as_pair, truths)),
        given=found.inputs,
        decided=found.decided,
        settings=other_settings(opened.pair.interface),
    )
