"""The classes that a device gives significantly less often than the reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.core.task import Decoder
from edgeflare.release.figures.decisions import ClassLoss
from edgeflare.run.systematic.differences import class_namer
from edgeflare.run.systematic.figures import ClassFlow
from edgeflare.statistics.binomial import surely_more


def class_losses(
    flows: Sequence[ClassFlow],
    decoder: Decoder,
    compared: tuple[Sequence[Answer], Sequence[Answer]],
    changed: tuple[Set[int], Set[int]],
    classes: Sequence[str],
) -> list[ClassLoss]:
    """Return the classes that the device gives less often, the largest loss first.

    A class that the reference gives too often is not lost: one whose inputs the device gets right
    surely more often is left out.

    Args:
        flows: the one-sided flows from the reference to the device.
        decoder: the reference's.
        compared: the reference's answers and the device's, to the same inputs.
        changed: the positions of the inputs that are harmed, and of those that are helped.
        classes: the user's names of the classes; empty where there are none.

    """
    given = _inputs_by_class(decoder, compared, classes)
    answers, (harmed, helped) = compared[0], changed
    losses = [
        ClassLoss(
            name=f"{flow.head}: {flow.name}" if flow.head else flow.name,
            inputs=max(len(its), flow.left),
            left=flow.left,
            came=flow.came,
            p_corrected=flow.p_corrected,
            harmed_elsewhere=_counted(answers, harmed - its),
            helped_elsewhere=_counted(answers, helped - its),
        )
        for flow in flows
        if flow.left > flow.came
        for its in [given.get((flow.head, flow.name), set())]
        if not surely_more(len(helped & its), len(harmed & its))
    ]
    return sorted(losses, key=lambda class_loss: class_loss.share, reverse=True)


def _inputs_by_class(
    decoder: Decoder,
    compared: tuple[Sequence[Answer], Sequence[Answer]],
    classes: Sequence[str],
) -> Mapping[tuple[str, str], set[int]]:
    """Return the positions of the inputs that the reference gives a class, by head and class."""
    found: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for at, pair in enumerate(zip(*compared, strict=True)):
        for head, name, answer, other in _by_head(decoder, pair):
            labels = answer.confusion(other)[:, 0]
            namer = class_namer(head, answer, classes if not name else ())
            for label in np.unique(labels[labels >= 0]).tolist():
                found[name, namer(label)].add(at)
    return found


def _by_head(
    decoder: Decoder, pair: tuple[Answer, Answer]
) -> Iterator[tuple[Decoder, str, Answer, Answer]]:
    """Yield each head's decoder, name and two answers; those as they are where there is one."""
    one, other = pair
    if decoder.heads and isinstance(one, JointAnswer) and isinstance(other, JointAnswer):
        for head, its, theirs in zip(decoder.heads, one.parts, other.parts, strict=True):
            yield head, head.tensor.name, its, theirs
    else:
        yield decoder, "", one, other


def _counted(answers: Sequence[Answer], positions: Collection[int]) -> int:
    """Return how many of some inputs have an answer whose decision is one class of several."""
    return sum(answers[at].counted for at in positions)
