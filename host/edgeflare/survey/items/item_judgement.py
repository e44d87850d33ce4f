"""What the answers to an item come to: the rows that a survey keeps in place of raw outputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.truths import Truths, is_right, truth_distance
from edgeflare.run.survey_rows import NO_DECISION, DeviceRow, HostRow


@dataclass(frozen=True, slots=True)
class ItemJudgement:
    """Judges the answers to items.

    Attributes:
        goal: what counts as a finding; without an original, that of kernels.
        choices: how many decisions the compressed model tells apart; 0 where they are not counted.
        truths: what is right for each input; None where nothing is known.

    """

    goal: Goal
    choices: int
    truths: Truths | None = None

    def of_host(self, item: int, input_crc32: int, evaluated: EvaluatedQuery) -> HostRow:
        """Return what the host's arms said about an item."""
        outcome = evaluated.outcome
        original, twin = outcome.answers.get(Arm.ORIGINAL), outcome[Arm.TWIN]
        truth = self._truth(item)
        compression = original is not None and original.differs(twin)
        return HostRow(
            item=item,
            input_crc32=input_crc32,
            compression=compression,
            compression_tied=compression and _tied(original, twin),
            doubtful=any(
                member.tied or member.differs(twin) for member in outcome.members.values()
            ),
            margin=_margin(original, twin),
            original_decision=self._decision(original),
            twin_decision=self._decision(twin),
            twin_distance=_distance(original, twin),
            seconds=evaluated.seconds,
            known=truth is not None,
            original_right=is_right(original, truth),
            twin_right=is_right(twin, truth),
            original_truth_distance=truth_distance(original, truth),
            twin_truth_distance=truth_distance(twin, truth),
        )

    def of_device(self, item: int, evaluated: EvaluatedQuery) -> DeviceRow:
        """Return what the device said about an item that all arms answered."""
        outcome = evaluated.outcome
        twin, device = outcome[Arm.TWIN], outcome[Arm.DEVICE]
        first = outcome[self.goal.compared[0]]
        deviates, truth = _parts(first, device), self._truth(item)
        # What the file itself does to both, such as a NaN, is no matter of kernels.
        shared = device.failure is not None and device.failure == twin.failure
        kernel = _parts(twin, device) and not shared
        strength = self.goal.strength(outcome) if deviates else None
        return DeviceRow(
            item=item,
            deviates=deviates,
            deviates_tied=deviates and _tied(first, device),
            kernel=kernel,
            kernel_tied=kernel and _tied(twin, device),
            failed=device.failure is not None,
            tied=device.tied,
            kind=self.goal.met(outcome),
            strength=None if strength is None else float(strength),
            device_decision=self._decision(device),
            device_distance=_distance(first, device),
            seconds=evaluated.seconds,
            device_right=is_right(device, truth),
            device_truth_distance=truth_distance(device, truth),
        )

    def _truth(self, item: int) -> Answer | None:
        """Return what is right for the input of an item."""
        return self.truths[item % len(self.truths)] if self.truths else None

    def _decision(self, answer: Answer | None) -> int:
        if answer is None or answer.decision is None or not (self.choices and answer.counted):
            return NO_DECISION
        return int(answer.decision)


def _parts(answer: Answer, device: Answer) -> bool:
    """Whether the device decides differently from an arm, or failed."""
    return device.failure is not None or answer.differs(device)


def _tied(one: Answer | None, other: Answer) -> bool:
    """Whether a difference hangs on a tie; a failure never does."""
    if one is None or one.failure is not None or other.failure is not None:
        return False
    return one.differs_by_tie(other)


def _margin(original: Answer | None, twin: Answer) -> float:
    """Return how far the twin is from deciding otherwise.

    Values have no boundary of their own: what is near there is the tolerance, at which the twin
    begins to deviate from the original.
    """
    if twin.failure is not None:
        return 0.0
    if twin.chooses:
        return float(twin.margin(twin))
    strength = None if original is None else original.strength_against(twin)
    return inf if strength is None else abs(float(strength))


def _distance(one: Answer | None, other: Answer) -> float | None:
    """Return how far apart two answers are, where these are no classes."""
    if one is None or one.counted or one.failure is not None or other.failure is not None:
        return None
    return float(one.measured(other))
