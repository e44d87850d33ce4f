"""Whether a device computes the file as the host does, on inputs as they come, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from edgeflare.campaign.dry_run import stage_differences
from edgeflare.check.answers import FIRST, Answers, changes_between, harmed_inputs
from edgeflare.check.figures.device import KernelFigures, StageFigures
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.truths import is_right
from edgeflare.models.pair_interface import PairInterface
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


def other_settings(interface: PairInterface) -> tuple[str, ...]:
    """Return the settings that a device has of its own, such as "channels bgr instead of rgb"."""
    if interface.device is None:
        return ()
    of_pair, here = (
        msgspec.to_builtins(replace(one.described(), device=None))
        for one in (interface, interface.on_device)
    )
    return tuple(dict.fromkeys(_others(of_pair, here)))  # a table may be told twice


def _others(of_pair: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two tables, by the innermost keys."""
    for key in dict.fromkeys((*of_pair, *here)):
        one, other = of_pair.get(key), here.get(key)
        if isinstance(one, dict) or isinstance(other, dict):
            yield from _others(one or {}, other or {})
        elif tables := _tables(one, other):
            for first, second in tables:
                yield from _others(first, second)
        elif one != other:
            yield f"{key} {_written(other)} instead of {_written(one)}"


def _tables(one: Any, other: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the tables of two lists of as many by pairs; none where they are others."""
    if not (isinstance(one, list | tuple) and isinstance(other, list | tuple)):
        return []
    both = list(zip(one, other, strict=False))
    alike = len(one) == len(other) and all(isinstance(its, dict) for its in (*one, *other))
    return both if alike else []


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
