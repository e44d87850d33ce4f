"""What a repair of a compressed model gives, by its own figures of inputs that it held out."""

from __future__ import annotations

import msgspec

from edgeflare.record.json_types import Count
from edgeflare.statistics.proportion import ShareEstimate, paired_difference


class MendedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Of held-out inputs those that are wrong, before a repair and after it.

    Attributes:
        inputs: how many there are.
        before: those that the compressed model has wrong.
        after: those that the repaired one has wrong.
        mended: those that the first alone has wrong.
        broken: those that the second alone has wrong.

    """

    inputs: Count
    before: Count
    after: Count
    mended: Count
    broken: Count

    @property
    def gain(self) -> ShareEstimate | None:
        """The share that is mended less that broken; None of no inputs."""
        return paired_difference(self.mended, self.broken, self.inputs) if self.inputs else None


class MendFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What `edgeflare repair` at equal cost gives.

    Attributes:
        folder: folder of the repair, within that of the check.
        candidate: the name of the one that is chosen; null where none is.
        written: whether that surely gains, so that there is a repaired model.
        why: why, or why not, as the repair says it.
        deviating: inputs as they come that are decided otherwise than by the original; null where
            nothing is chosen, or the chosen one fails on held-out inputs.
        wrong: likewise those of the labelled ones that are decided wrongly; null without labels.
        near: likewise inputs near the original's decision boundary that are decided otherwise.
        beyond: the options that allow the best candidate beyond the limits of cost; empty where
            none surely gains more.
        near_beyond: inputs near the boundary that this one decides otherwise; null without.

    """

    folder: str
    candidate: str | None
    written: bool
    why: str
    deviating: MendedInputs | None
    wrong: MendedInputs | None
    near: MendedInputs | None
    beyond: tuple[str, ...]
    near_beyond: Count | None

    @property
    def gain(self) -> ShareEstimate | None:
        """What it gains on held-out inputs as they come: in accuracy where that is known."""
        best = self.wrong or self.deviating
        return None if best is None or not self.written else best.gain

    def in_words(self) -> str:
        """Return what it gives, a sentence without its full stop; what counts most comes first."""
        words = f"`repair` does not mend it at equal cost: {self.why}"
        if self.written and self.near is not None:
            near = self.near
            broken = f" and breaks {near.broken:,}" if near.broken else ""
            words = (
                f"`repair` at equal cost: {self._as_they_come()}of {near.before:,} that deviate"
                f" near the boundary it mends {near.mended:,}{broken}"
            )
        if self.near_beyond is None:
            return words
        return f"{words}; {self.near_beyond:,} deviate beyond that cost, {' '.join(self.beyond)}"

    def _as_they_come(self) -> str:
        """Return what it gives on inputs as they come, up to a semicolon."""
        known, gain = self.wrong or self.deviating, self.gain
        if known is None or gain is None:
            return ""
        before, after = (1 - wrong / known.inputs for wrong in (known.before, known.after))
        what = "agreement" if self.wrong is None else "accuracy"
        return (
            f"{what} {after:.1%} instead of {before:.1%} on {known.inputs} held-out inputs (a gain"
            f" of {gain.low:.1%} to {gain.high:.1%}); "
        )
