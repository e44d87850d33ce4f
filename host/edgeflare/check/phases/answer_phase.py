"""The answers of a device and the host to the inputs, and what these show at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.check.answers import (
    Answers,
    ask_arms,
    data_figures,
    decision_figures,
    seconds_per_input,
)
from edgeflare.check.figures.data import OtherReading
from edgeflare.check.figures.decisions import SHOWN
from edgeflare.check.figures.device_figures import DeviceFigures, OutputFigures
from edgeflare.check.kernel_comparison import kernel_figures, output_figures, score_error
from edgeflare.check.pair_check import PairCheck
from edgeflare.check.phases.check_record import ANSWERS_UNTIL, CheckRecord
from edgeflare.check.readings import (
    reading_of_the_device,
    reading_of_the_file,
    reading_of_the_reference,
)
from edgeflare.core.goal import Find, Goal
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan


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
        limit=check.request.limit,
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
    if not record.check.request.inputs or device is None:
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
