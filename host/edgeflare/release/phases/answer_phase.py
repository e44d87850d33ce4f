"""The answers of a device and the host to the inputs, and what these show at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from edgeflare.campaign.dry_run import stage_differences
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm
from edgeflare.core.truths import is_right
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair_interface import PairInterface
from edgeflare.release.answers import (
    FIRST,
    Answers,
    ask_arms,
    changes_between,
    data_figures,
    decision_figures,
    harmed_inputs,
    seconds_per_input,
)
from edgeflare.release.figures.data import OtherReading
from edgeflare.release.figures.decisions import SHOWN
from edgeflare.release.figures.device_figures import (
    DeviceFigures,
    KernelFigures,
    OutputFigures,
    ScoreError,
    StageFigures,
)
from edgeflare.release.output_errors import output_figures
from edgeflare.release.pair_check import PairCheck
from edgeflare.release.phases.check_record import ANSWERS_UNTIL, CheckRecord
from edgeflare.release.readings import (
    reading_of_the_device,
    reading_of_the_file,
    reading_of_the_reference,
)
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_warnings import undelegated
from edgeflare.run.systematic.one_sided import score_change


def ask_device(
    record: CheckRecord, at: int, profile: Profile, stack: ExitStack
) -> OpenedPair | None:
    """Open a device, and ask it and the host about the inputs.

    Args:
        record: what the check has measured so far.
        at: place of the device among those that are named.
        profile: the device.
        stack: closes the device in the end.

    Returns:
        The pair on the device; None of a further device that refuses the model, or that the user
        does not want to wait for.

    Raises:
        UserError: the first device refuses the model, or the pair is not what it should be.

    """
    name = f"answers of {profile.name}"
    if at and record.interrupt.asked():
        record.cut(name)
        return None
    try:
        opened = open_on(record.check, profile, stack)
    except UserError as refused:
        if at == 0:
            raise
        record.miss(name, str(refused))
        return None
    known = record.device(profile.name)
    all_known = known is not None and known.decisions.inputs == len(opened.seeds)
    if all_known and not record.was_cut(name):
        return opened
    share = ANSWERS_UNTIL * (at + 1) / len(record.check.profiles)
    each = record.seconds[profile.name] = seconds_per_input(opened)
    stopped = record.begin(name, share * record.until, each * len(opened.seeds))
    taken = None
    for taken in ask_arms(opened, stopped, partial(record.observer.worked, "answers")):
        if known is None and 0 < len(taken.evaluated) < len(opened.seeds):
            _take(record, taken, _FurtherFigures(), first=at == 0)
    if taken is None or not taken.evaluated:
        return opened
    if known is None or len(taken.evaluated) > known.decisions.inputs or not stopped():
        further = _FurtherFigures.of(taken, stopped, first=at == 0)
        _take(record, taken, further, first=at == 0)
        _keep_inputs(record, taken)
    return opened


def open_on(check: PairCheck, profile: Profile, stack: ExitStack) -> OpenedPair:
    """Open the pair of a check on a device.

    Raises:
        UserError: the device refuses the model, or the pair is not what it should be.

    """
    plan = Plan(
        strategy=check.pair.interface.opened_task.strategy,
        goal=Goal(Find.KERNEL if check.pair.original is None else Find.ANY),
        devices=(profile.name,),
        ensemble=(TWIN_KERNELS,),
        limit=check.most_inputs,
    )
    return open_pair(check.pair, plan, [profile], stack)


@dataclass(frozen=True, slots=True)
class _FurtherFigures:
    """What further inferences show of the inputs that were answered.

    Attributes:
        device: a preprocessing with which the twin decides as the device; None where none was
            found.
        outputs: how far the outputs are apart, as numbers.
        reference: a preprocessing with which the reference is right more often; None where none was
            found, or of a further device.
        file: a preprocessing with which the twin decides as the original, likewise.

    """

    device: OtherReading | None = None
    outputs: tuple[OutputFigures, ...] = ()
    reference: OtherReading | None = None
    file: OtherReading | None = None

    @classmethod
    def of(cls, answers: Answers, stopped: Callable[[], bool], *, first: bool) -> _FurtherFigures:
        device = reading_of_the_device(answers, stopped)
        outputs = () if stopped() else output_figures(answers)
        if not first:
            return cls(device, outputs)
        reference = reading_of_the_reference(answers, stopped)
        return cls(device, outputs, reference, reading_of_the_file(answers, stopped))


def _take(record: CheckRecord, answers: Answers, further: _FurtherFigures, *, first: bool) -> None:
    """Keep what the answers show; those of the first device tell of the data, too."""
    figures = DeviceFigures(
        decisions=decision_figures(answers),
        kernels=replace(kernel_figures(answers), reading=further.device),
        outputs=further.outputs,
        score=score_error(answers),
    )
    if first:
        data = data_figures(answers)
        data = replace(data, guessed=record.check.guessed, other_reading=further.reference)
        record.update(data=data, reading=further.file)
    record.update_device(figures)
    record.keep()


def _keep_inputs(record: CheckRecord, answers: Answers) -> None:
    """Keep the inputs that a device decides otherwise, to be shown, and how answers are drawn."""
    opened = answers.opened
    device = record.device(opened.devices[0].profile.name)
    if not record.check.request.keep_inputs or device is None:
        return
    keep, domain = record.store.keep_input, opened.pair.interface.domain
    kept = tuple(
        replace(
            changed_input,
            file=keep(changed_input.seed_id, opened.seeds.input_of(changed_input.seed_id), domain),
            answers=answers.views_of(changed_input.seed_id) if at < SHOWN else (),
        )
        for at, changed_input in enumerate(device.decisions.changed_inputs)
    )
    decisions = replace(device.decisions, changed_inputs=kept)
    record.update_device(replace(device, decisions=decisions))


_STAGED: Final = 256
"""Inputs on which the stages of a device are compared with the pair's."""


def kernel_figures(answers: Answers) -> KernelFigures:
    """Return whether the device computes the file as the host does."""
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
    known = RunDevice.of(device)
    again = [query.repeated(before) for before, query in answers.repeated]
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
        changed=sum(answer.differs(other) for answer, other in zip(own, as_pair, strict=True)),
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
        msgspec.to_builtins(replace(pair_interface.described(), device=None))
        for pair_interface in (interface, interface.on_device)
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


def score_error(answers: Answers) -> ScoreError | None:
    """Return how much higher the device scores what is decided; None without such a score."""
    first, device = (answers.of(arm) for arm in answers.goal.compared)
    change = score_change(first, device)
    if change is None:
        return None
    words, _ = first[0].support_words()
    return ScoreError(score=words, **change._asdict())
