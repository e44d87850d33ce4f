"""What an inference costs in a check."""

from __future__ import annotations

import msgspec

from edgeflare.record.json_types import Amount, Count, CountFromOne


class CostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What an input costs on a device: an inference, or as many as it takes.

    Attributes:
        device: name of the device.
        compressed: time of the compressed model; null where it was not timed.
        original: time of the original; null where it does not run there.
        ratio: time of the compressed model over that of the original, in turns: the median, and
            the ends of its interval of 95 %; null without an original.
        worker_bytes: resident memory of the largest worker process of the agent; null where that is
            not told.
        arena_bytes: size of the compressed model's arena; null where the runtime has none.
        inferences: number of inferences of one input, such as the windows of a sound, which the
            times are of together.

    """

    device: str
    compressed: InferenceTime | None
    original: InferenceTime | None
    ratio: tuple[Amount, Amount, Amount] | None
    worker_bytes: Count | None
    arena_bytes: Count | None
    inferences: CountFromOne = 1


class InferenceTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long an inference takes, in seconds, as the agent measures it.

    Attributes:
        inferences: number of inferences that were timed after the first.
        first: the first one, on a model that was just opened.
        median: median time of the others.
        high: what nine tenths of them do not exceed.

    """

    inferences: CountFromOne
    first: Amount
    median: Amount
    high: Amount
