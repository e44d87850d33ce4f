"""How the answers about the frames of a clip are summed up to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.errors import UserError

FrameRule = Literal["last", "any", "mean", "worst"]
"""Rule by which frames of a clip count. last: the last one alone. mean: the mean over the frames.
any: each frame is compared with the same frame of the other arm, and one that deviates is enough.
worst: the frame with the greatest score, or the greatest distance."""


@dataclass(frozen=True, slots=True)
class ClipFrames:
    """The frames of a clip that count; none where an input is no clip.

    Attributes:
        count: frames of a clip; 0 where an input is no clip.
        rule: how they are summed up.
        first: the first that counts, from 0; those before it are left out.

    """

    count: int = 0
    rule: FrameRule = "last"
    first: int = 0

    @classmethod
    def of_model(cls, count: int, rule: FrameRule, first: int, model: str) -> ClipFrames:
        """Return the frames of a model.

        Raises:
            UserError: the clip has no such frame.

        """
        if count and first >= count:
            raise UserError(
                f"{model}: first_frame is {first}, but a clip has {count} frames: give 0 to "
                f"{count - 1}"
            )
        return cls(count, rule, first) if count else cls()

    @property
    def answers(self) -> int:
        """How many frames are answered each by itself: more than one with the rule "any"."""
        return self.count - self.first if self.rule == "any" and self.count else 1

    def values(self, real: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the frames that count.

        Args:
            real: (batch, frames, *shape), or (batch, *shape) where an input is no clip.

        Returns:
            (batch, frames that count, size of *shape).

        """
        count = self.count or 1
        frames = real.reshape(len(real), count, prod(real.shape[1:]) // count)
        return frames[:, -1:] if self.rule == "last" else frames[:, self.first :]

    def means(self, real: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same, the mean of the frames with the rule "mean"."""
        values = self.values(real)
        return values.mean(axis=1, keepdims=True) if self.rule == "mean" else values

    def frame_name(self, place: int) -> str:
        """Return the name of a frame that counts; empty where it is the only one.

        Args:
            place: position among those that count.

        """
        return "" if not self.count or self.rule == "last" else f"frame {self.first + place}"


NO_CLIP = ClipFrames()

MOST_SHOWN = 4
"""Frames that are shown of a clip whose frames are answered each by itself."""


def frames_to_show(
    frames: ClipFrames, answers: Mapping[str, Answer], compared: tuple[str, str]
) -> Iterator[tuple[str, dict[str, Answer]]]:
    """Yield the frames in which the compared arms differ most: a name, and the answers by arm.

    Args:
        frames: frames of the clip that count.
        answers: answers by arm; where the frames are not answered each by itself, they are yielded
            alone.
        compared: the two arms.

    """
    if frames.answers == 1:
        yield "", dict(answers)
        return
    joint = {
        arm: answer.parts for arm, answer in answers.items() if isinstance(answer, JointAnswer)
    }
    each = [dict(zip(joint, parts, strict=True)) for parts in zip(*joint.values(), strict=True)]

    def strength(at: int) -> float:
        first, second = (each[at].get(arm) for arm in compared)
        return 0.0 if first is None or second is None else first.strength_against(second) or 0.0

    strongest = sorted(range(len(each)), key=strength, reverse=True)[:MOST_SHOWN]
    for at in sorted([at for at in strongest if strength(at) > 0.0] or strongest[:1]):
        yield frames.frame_name(at), each[at]


def require_frame_keys(task: str, rule: str, first_frame: int, rules: tuple[str, ...]) -> None:
    """Refuse keys of frames that a task cannot have.

    Raises:
        UserError: it has no such rule, or the first frame is below 0 or not used.

    """
    if rule not in rules:
        raise UserError(
            f"frames is {rule!r}; the task {task} takes {' or '.join(map(repr, rules))}"
        )
    if first_frame < 0:
        raise UserError(f"first_frame is {first_frame}; expected 0 or more")
    if first_frame and rule == "last":
        raise UserError(
            "first_frame says where frames begin to count, and frames is 'last': remove one"
        )
