"""Robustness of a model before and after a repair: seeds that keep their label under attack.

The attacks are those of the searches `fgsm` and `pgd` (Goodfellow et al., ICLR 2015, §4; Madry et
al., ICLR 2018, §2.1), on each of the two models itself: they raise its cross entropy at the label
that the original gives to the seed.

Differences from the originals: the class is the original's, not the true one; PGD begins at the
seed, so that nothing is drawn; points are rounded to inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.input_space import Input, InputSpace, Real
from edgeflare.core.query import Arm, GradientQuery, TranslatedQuery
from edgeflare.errors import UserError
from edgeflare.record.json_types import Amount, Count
from edgeflare.repair.judging.candidate_model import NAME, CandidateModel, open_candidate
from edgeflare.repair.judging.judgement_inputs import JudgedSet
from edgeflare.strategies.baselines.gradient_sign_attacks import loss_weights

RADIUS: Final = 8.0
"""The most that a value changes, in levels: usual for photographs."""

_STEP, _STEPS = 2.0, 20
"""Levels that a step of PGD changes each value by, and how many steps it takes; the paper's for
photographs."""

_ATTACKS: Final = {"none": (0, 0.0), "fgsm": (1, RADIUS), "pgd": (_STEPS, _STEP)}
"""How many steps each attack takes, and how long they are."""

_CHECKED = 8
"""Seeds by which the translation of a model is held to what the runtime computes."""


class Attacked(msgspec.Struct, frozen=True):
    """How many seeds keep the original's label.

    Attributes:
        before: seeds that keep it with the compressed model before.
        after: seeds that keep it with the repaired one.

    """

    before: Count
    after: Count


class Robustness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model before and after a repair stand attacks.

    Attributes:
        seeds: seeds that judge, to which the original gives a label.
        radius: the most that a value changes, in levels.
        kept: how many keep that label, by the name of the attack; "none" for the seeds themselves.
        why_not: why it is not measured; absent where it is.

    """

    seeds: Count = 0
    radius: Amount = RADIUS
    kept: Mapping[str, Attacked] = {}
    why_not: str | None = None


def robustness(before: bytes, after: bytes, opened: OpenedPair, seeds: JudgedSet) -> Robustness:
    """Attack a model and its repaired form from the seeds that judge.

    Args:
        before: the compressed model's file.
        after: the repaired one's.
        opened: the pair.
        seeds: the seeds, with the original's answers.

    """
    places = [at for at, answer in enumerate(seeds.original) if answer.decision is not None]
    labels = [seeds.original[at].decision or 0 for at in places]
    inputs, ids = seeds.inputs[places], [int(seeds.seed_ids[at]) for at in places]

    def kept(content: bytes) -> dict[str, int]:
        found = {}
        with open_candidate(content, opened) as model:
            try:
                for name, moved in attacked_inputs(model, opened, inputs, labels):
                    answers = zip(model.answers(moved, ids), labels, strict=True)
                    found[name] = sum(answer.decision == label for answer, label in answers)
            except UserError as refused:  # the file lies in a folder of this moment
                raise UserError(str(refused).replace(str(model.path), NAME)) from None
        return found

    try:
        old, new = kept(before), kept(after)
    except UserError as refused:
        return Robustness(why_not=str(refused))
    return Robustness(
        seeds=len(places), kept={name: Attacked(old[name], new[name]) for name in old}
    )


def attacked_inputs(
    model: CandidateModel, opened: OpenedPair, inputs: Input, labels: Sequence[int]
) -> Iterator[tuple[str, Input]]:
    """Yield inputs after each attack on a model, with its name; "none" first, as they are.

    Args:
        model: a classifier, whose own gradient is followed.
        opened: its pair.
        inputs: of the pair's domain, (n, *shape).
        labels: of each, at which the cross entropy is raised.

    Raises:
        UserError: the model has no gradient, several inputs, or some whose values are no
            quantities.

    """
    ascend, space = _ascent(model, opened, inputs[:_CHECKED]), opened.pair.interface.domain.space
    for name, (steps, step) in _ATTACKS.items():
        pairs = zip(inputs, labels, strict=True)
        moved = [_attacked(row, label, ascend, space, steps, step) for row, label in pairs]
        yield name, np.stack(moved)


def require_attackable(content: bytes, opened: OpenedPair, inputs: Input) -> None:
    """Refuse a model that `attacked_inputs` refuses, before anything is made.

    Args:
        content: its `.tflite` file.
        opened: its pair.
        inputs: of the pair's domain, (n, *shape).

    """
    with open_candidate(content, opened) as model:
        try:
            _ascent(model, opened, inputs[:_CHECKED])
        except UserError as refused:
            raise UserError(str(refused).replace(str(model.path), NAME)) from None


Ascend = Callable[[Input, int], Real]
"""Returns the gradient of the cross entropy at a label, but for its length, by levels."""


def _attacked(
    seed: Input, label: int, ascend: Ascend, space: InputSpace, steps: int, step: float
) -> Input:
    """Return the seed after steps along the sign of the gradient, within the radius."""
    origin, one = space.levels(seed), seed
    fall, rise = (np.clip(most, -RADIUS, RADIUS) for most in space.limits(seed))
    real = origin
    for _ in range(steps):
        real = np.clip(real + step * np.sign(ascend(one, label)), origin + fall, origin + rise)
        one = space.nearest(real)
    return one


def _ascent(model: CandidateModel, opened: OpenedPair, some: Input) -> Ascend:
    """Return the gradient of a model's own cross entropy."""
    from edgeflare.whitebox.pair_translation import (  # noqa: PLC0415 - needs jax
        ArmToTranslate,
        TranslatedPair,
    )

    space, arm = opened.pair.interface.domain.space, model.arm
    if arm.fixed is not None or not space.ordered:
        raise UserError("attacks are of one input whose values are quantities")
    shape = arm.evaluator.signature.input.shape
    rows = list(arm.encoder.encode(some))
    told = ArmToTranslate(
        str(model.path), opened.ensemble[0], shape, arm.encoder, arm.decoder, rows
    )
    translated = TranslatedPair({Arm.TWIN: told}, space.level)

    def ascend(one: Input, label: int) -> Real:
        (answered,) = translated.answered(TranslatedQuery([one], None))
        weights = loss_weights(answered.scores[Arm.TWIN], label)
        return np.asarray(translated.answer(GradientQuery(one, Arm.TWIN, weights)))

    return ascend
