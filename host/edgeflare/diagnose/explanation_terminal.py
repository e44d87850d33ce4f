"""The tables of explanations that `edgeflare explain` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite

from rich.console import Console

from edgeflare.diagnose.compression_error import (
    LISTED,
    UNJUDGED,
    CompressionError,
    LayerCompressionError,
)
from edgeflare.diagnose.execution_modes import Vote
from edgeflare.diagnose.explanation import Explanation
from edgeflare.diagnose.layer_difference import LARGEST, Difference, in_digits
from edgeflare.diagnose.verdict import OF_KERNELS, STAGE_PLACES, which_in_words
from edgeflare.pages.facts import count_of, in_words
from edgeflare.pages.page import Sentences, Table, listed, row_groups
from edgeflare.pages.terminal import print_blocks

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

_LEAST_CUT_OFF = 1e-3
"""Share of a layer's values: fewer that are cut off are not shown."""

_BEGINS = " ←"
"""What stands behind a layer where a difference begins."""


def print_explanations(
    console: Console,
    explanations: Sequence[Explanation],
    classes: Sequence[str],
    where: str,
    bars: Callable[[Explanation], Table],
) -> None:
    """Print the verdicts and how often each is; for a single finding all its evidence.

    Args:
        console: where to.
        explanations: what to print.
        classes: names of the classes.
        where: the file that has everything.
        bars: returns the layers of a single finding as bars.

    """
    first, *others = explanations
    alike = row_groups(explanations, _row)
    rows = [
        (listed([explanation.finding.seed_id for explanation in ones]), *_row(ones[0]), _why(ones))
        for ones in sorted(alike, key=len)
    ]
    header = ("seed", "cause", "verdict", "where it begins", "why")
    print_blocks(console, Table.of_words(header, rows, title="Verdicts"))
    if not others:
        print_blocks(console, _votes(first, classes), _layers(first), bars(first))
    counts = Counter(explanation.verdict.name for explanation in explanations).most_common()
    said = ", ".join(f"{count} {name}" for name, count in counts)
    print_blocks(
        console,
        Sentences([f"{count_of(len(explanations), 'finding')}: {said}."] if others else []),
        Sentences(_verdict_summaries(explanations)),
        Sentences(_notes(explanations)),
        Sentences([f"Everything is in {where}."]),
    )


def _row(explanation: Explanation) -> tuple[str, str, str]:
    """Return what a row says of a finding, but for the evidence: cause, verdict and place."""
    return (
        explanation.finding.cause or explanation.finding.kind,
        str(explanation.verdict),
        _begins(explanation),
    )


def _why(alike: Sequence[Explanation]) -> str:
    """Return the evidence of the first finding, and how many there are that differ in it."""
    why = alike[0].verdict.why
    if all(explanation.verdict.why == why for explanation in alike):
        return why
    return f"{why} (seed {alike[0].finding.seed_id}, the first of {len(alike)} findings)"


def _notes(explanations: Sequence[Explanation]) -> list[str]:
    """Return what could not be seen of layers and why; of several findings, how many it is of."""
    if len(explanations) == 1:
        (only,) = explanations
        notes = (only.kernel_onset.note, only.compression_error.note)
        # What the layers' errors do to the margin matters only where compression may be to blame.
        blames = only.verdict.name in ("compression", "several")
        counts = Counter(note for note in notes if blames or not note.startswith(UNJUDGED))
    else:
        counts = Counter(
            explanation.compression_error.note
            if explanation.verdict.name == "compression"
            else explanation.kernel_onset.note
            for explanation in explanations
        )
    of = {
        note: f" ({count_of(count, 'finding')})" if count > 1 else ""
        for note, count in counts.items()
    }
    return [f"note: {note}{of[note]}" for note, _ in counts.most_common() if note]


def _begins(explanation: Explanation) -> str:
    """Return where a verdict says that the difference begins: in a layer, or at a stage."""
    if explanation.verdict.name in STAGE_PLACES:
        return STAGE_PLACES[explanation.verdict.name]
    if explanation.verdict.name == "compression":
        return _begins_of_compression(explanation.compression_error)
    if explanation.verdict.name not in OF_KERNELS:
        return "–"
    if explanation.kernel_onset.onset is None:
        return "not seen" if explanation.kernel_onset.method == "none" else "–"
    return (
        f"{explanation.kernel_onset.onset}{'' if explanation.kernel_onset.first else ' or earlier'}"
    )


def _begins_of_compression(error: CompressionError) -> str:
    if error.most is not None:
        return str(error.most)
    if error.coarse:
        return ", ".join(f"{coarse}: {in_words(coarse.kind)}" for coarse in error.coarse)
    if error.original is not None:
        return f"{error.original.kind} of the original"
    if not error.layers:
        return "not seen"
    return "no single layer" if error.judged else "not judged"


def _votes(explanation: Explanation, classes: Sequence[str]) -> Table:
    evidence = explanation.evidence
    named = [(str(vote.mode), vote) for vote in evidence.votes]
    if evidence.stages is not None:
        named += evidence.stages.named()
    rows = [
        (
            name,
            evidence.described(vote) or _label(vote, classes),
            str(len(vote.labels)),
            f"{vote.outputs[0]:08x}" if vote.steady else "varies",
        )
        for name, vote in named
    ]
    return Table.of_words(("how", "answers", "times", "output"), rows, title="Who answers what")


def _label(vote: Vote, classes: Sequence[str]) -> str:
    said = [
        vote.failure or "nothing"
        if label is None
        else classes[label]
        if label < len(classes)
        else str(label)
        for label in dict.fromkeys(vote.labels)
    ]
    return ", then ".join(said) + (" (a tie)" if vote.tied else "")


def _layers(explanation: Explanation) -> Table:
    error_columns: dict[str, Callable[[LayerCompressionError], str]] = {
        "twin – original": _in_db,
        "new here": lambda error: in_digits(error.residual, ".1f"),
        "explained": lambda error: (
            in_digits(error.explained, ".1f") if isfinite(error.explained) else "not known"
        ),
    }
    if explanation.compression_error.beyond:
        error_columns["beyond it by"] = _decided
        error_columns["of the margin"] = lambda error: (
            "" if error.margin_share is None else f"{error.margin_share:.0%}"
        )
    if any(_cut_off(error) for error in explanation.compression_error.layers):
        error_columns["cut off"] = _cut_off
    units = _in_units(explanation)
    measure = "quantization units" if units else "real values, new in twin – original in units"
    onset, most = explanation.kernel_onset.onset, explanation.compression_error.most
    blamed = [
        layer for layer in (onset, most, *explanation.compression_error.coarse) if layer is not None
    ]
    named = {layer.operator_index for layer in blamed}
    totals = {layer.operator_index: layer for layer in explanation.kernel_onset.layers}
    errors = {error.layer.operator_index: error for error in explanation.compression_error.layers}
    names = {at: error.layer for at, error in errors.items()} | totals
    rows = []
    for operator in sorted(names):
        total, error = totals.get(operator), errors.get(operator)
        rows.append(
            (
                f"{operator} {names[operator].name}{_BEGINS * (operator in named)}",
                _apart(None if total is None else total.total, units=units),
                _apart(None if total is None else total.own, units=units),
                *("" if error is None else said(error) for said in error_columns.values()),
            )
        )
    return Table(
        title=f"Along the network, largest differences in {measure}",
        header=("layer", "device – twin", "new here", *error_columns),
        rows=rows,
        note=f"{_BEGINS.strip()} where a difference begins" if named else "",
        whole=True,
    )


def _in_db(error: LayerCompressionError) -> str:
    if error.total is None:
        return ""
    return "inf dB" if error.total.snr_db is None else f"{error.total.snr_db:.0f} dB"


def _decided(error: LayerCompressionError) -> str:
    """Return the figures in which a layer's error is larger than quantization explains."""
    said = []
    if error.residual > error.explained:
        said.append(f"new here {_above(error.residual, error.explained)}")
    if error.constants is not None and error.constants.beyond:
        what = "bias overflows:" if error.overflows else "constant"
        said.append(f"{what} {_above(error.constants.steps, error.constants.explained)}")
    return ", ".join([*said, *map(str, error.options)])


def _cut_off(error: LayerCompressionError) -> str:
    """Return the share of the original's values that the layer cannot hold; empty for hardly any.

    Where it is on one side, that is said.
    """
    if error.cut_off is None:
        return ""
    below, above = error.cut_off.below, error.cut_off.above
    if below + above < _LEAST_CUT_OFF:
        return ""
    side = "" if min(below, above) else " below" if below else " above"
    return f"{below + above:.1%}{side}"


def _above(value: float, limit: float) -> str:
    """Return two figures with as many digits as they need to differ."""
    if value >= LARGEST:
        return in_digits(value, "")
    digits = next((n for n in range(2, 17) if f"{value:.{n}g}" != f"{limit:.{n}g}"), 17)
    return f"{value:.{digits}g} > {limit:.{digits}g}"


def _in_units(explanation: Explanation) -> bool:
    """Whether differences of device and twin are counted in units; if not, they are real values."""
    totals = [layer.total for layer in explanation.kernel_onset.layers if layer.total is not None]
    return not totals or any(total.max_error_steps is not None for total in totals)


def _apart(found: Difference | None, *, units: bool) -> str:
    """Return a difference; in a network that is counted in units, name what is not."""
    if found is None:
        return ""
    if not units or found.max_error == 0:
        return in_digits(found.max_error, ".2g")
    return (
        f"{in_digits(found.max_error, '.2g')} real"
        if found.max_error_steps is None
        else f"{found.max_error_steps:.0f}"
    )


def _verdict_summaries(explanations: Sequence[Explanation]) -> list[str]:
    """Return for each verdict a sentence and what to do next, those of most findings first."""
    lines = []
    for ones in sorted(row_groups(explanations, _what_is_alike), key=len, reverse=True):
        verdict = ones[0].verdict
        blamed, sentence = _SENTENCES[verdict.name]
        of = f" of {count_of(len(ones), 'finding')}" if len(explanations) > 1 else ""
        which = _which(ones[0])
        said = _said_of_compression(ones) if verdict.name == "compression" else ""
        step = ones[0].next_step
        lines.append(
            f"{blamed}{of}{f', {which}' if which else ''}: {said or sentence}."
            f"{f' Next: {step}.' if step else ''}"
        )
    return lines


def _which(explanation: Explanation) -> str | None:
    verdict = explanation.verdict
    if verdict.which is not None:
        return which_in_words(verdict.which)
    if verdict.name != "compression":
        return None
    return None if explanation.compression_error.original is None else "not finite"


def _what_is_alike(explanation: Explanation) -> tuple[object, ...]:
    """Return what findings share that are told together, whatever their figures."""
    error, verdict = explanation.compression_error, explanation.verdict
    if verdict.name != "compression":
        return verdict.name, verdict.which
    if verdict.which == "coarse":
        return verdict.name, *((str(layer), layer.part, layer.kind) for layer in error.coarse)
    if verdict.which == "spread":
        return verdict.name, verdict.which
    return verdict.name, _which(explanation), error.said, explanation.next_step


def _said_of_compression(ones: Sequence[Explanation]) -> str:
    """Say what is to blame for some findings of one kind; empty where that is not known."""
    errors = [explanation.compression_error for explanation in ones]
    first, which = errors[0], ones[0].verdict.which
    if which is None:
        return ""
    if len(ones) > 1 and which == "spread":
        counts = Counter(str(layer) for error in errors for layer in error.spread)
        layers = ", ".join(f"{layer} in {count}" for layer, count in counts.most_common(LISTED))
        return f"{first.ordinary_rounding}; among the {LISTED} largest shares most often: {layers}"
    if all(error.said == first.said for error in errors):
        return first.said
    return f"{first.said} (figures of seed {ones[0].finding.seed_id})"
