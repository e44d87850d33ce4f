"""What is to blame for several findings and what to do next, told once for those that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edgeflare.diagnose.compression_error import LISTED, CompressionError
from edgeflare.diagnose.explain_findings import Explanation

_SENTENCES: dict[str, tuple[str, str]] = {
    "compression": ("Compression", "the file decides otherwise than the original on all kernels"),
    "kernel": ("Kernels", "device and twin compute the same file differently"),
    "several": ("Compression and kernels", "both have a part in the deviation"),
    "host-suspect": ("The host's kernels", "they contradict each other, or the device sides with"
                     " some of them against the twin"),
    "unstable": ("An unstable device", "it does not answer the same input alike each time"),
    "input-suspect": ("The input", "two arms differ as if they were not given the same input"),
    "other-order": ("Another order", "an arm has outputs, classes or values in another order"),
    "input-stage": ("The device's input stage", "the device prepares inputs otherwise than the"
                    " pair"),
    "output-stage": ("The device's output stage", "the device reads outputs otherwise than the"
                     " pair"),
    "both-stages": ("The device's stages", "the device prepares inputs and reads outputs otherwise"
                    " than the pair"),
    "none": ("Nothing", "the arms agree on the input"),
}  # fmt: skip
"""What a verdict blames, and in which way."""


def verdict_summaries(explanations: Sequence[Explanation]) -> list[str]:
    """Return for each verdict a sentence and what to do next, those of most findings first."""
    alike: dict[tuple[object, ...], list[Explanation]] = {}
    for one in explanations:
        alike.setdefault(_what_is_alike(one), []).append(one)
    lines = []
    for ones in sorted(alike.values(), key=len, reverse=True):
        verdict = ones[0].verdict
        blamed, sentence = _SENTENCES[verdict.name]
        of = f" of {counted_findings(len(ones))}" if len(explanations) > 1 else ""
        which = _which(ones[0])
        said = _said_of_compression(ones) if verdict.name == "compression" else ""
        step = ones[0].next_step
        lines.append(
            f"{blamed}{of}{f', {which}' if which else ''}: {said or sentence}."
            f"{f' Next: {step}.' if step else ''}"
        )
    return lines


def counted_findings(count: int) -> str:
    """Return how many findings, in words."""
    return "1 finding" if count == 1 else f"{count} findings"


def _which(one: Explanation) -> str | None:
    verdict = one.verdict
    if verdict.name != "compression" or verdict.which is not None:
        return verdict.which
    return None if one.compression_error.original is None else "not finite"


def _what_is_alike(one: Explanation) -> tuple[object, ...]:
    """Return what findings share that are told together, whatever their figures."""
    error, verdict = one.compression_error, one.verdict
    if verdict.name != "compression":
        return verdict.name, verdict.which
    if verdict.which == "coarse":
        return verdict.name, *((one.layer, one.part, one.kind) for one in error.coarse)
    if verdict.which == "spread":
        return verdict.name, verdict.which
    return verdict.name, _which(one), error.said, one.next_step


def _said_of_compression(ones: Sequence[Explanation]) -> str:
    """Say what is to blame for some findings of one kind; empty where that is not known."""
    errors = [one.compression_error for one in ones]
    first, which = errors[0], ones[0].verdict.which
    if which is None:
        return ""
    if len(ones) > 1 and which == "spread":
        return _spread(errors)
    if all(error.said == first.said for error in errors):
        return first.said
    return f"{first.said} (figures of seed {ones[0].finding.seed_id})"


def _spread(errors: Sequence[CompressionError]) -> str:
    """Say of several findings in how many of them layers have the largest shares."""
    counts = Counter(layer for error in errors for layer, _ in error.spread)
    layers = ", ".join(f"{layer} in {count}" for layer, count in counts.most_common(LISTED))
    return f"{errors[0].ordinary_rounding}; among the {LISTED} largest shares most often: {layers}"
