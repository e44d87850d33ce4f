"""Causes in the compressed file: faults of it, and what it was made for."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.pages.facts import significant
from edgeflare.release.causes.cause import AGREES, Cause, KnownToRules, Rule, capitalized, outcome
from edgeflare.release.figures.file import FileFault
from edgeflare.release.harm import file_does_harm


def faulty_file(known: KnownToRules) -> Iterator[Cause]:
    """Yield faults of the file that are not a matter of ranges or of one layer."""
    for fault in known.of_kinds(
        *("unread-input", "not-finite", "overflow", "flushed-constant", "options"),
        *("copied-scale", "raw-state", "state-scale"),
    ):
        yield _of_fault("file", fault, known)


def other_order(known: KnownToRules) -> Iterator[Cause]:
    """Yield outputs, classes or values that the file has in another order."""
    for device in known.figures.devices:
        systematic = device.decisions.systematic
        for order in () if systematic is None else systematic.orders:
            if order.first != "labels" and order.after >= AGREES:
                yield Cause(
                    rule="order",
                    sentence=capitalized(str(order)),
                    evidence=outcome(device),
                    next_step="use the labels that belong to the compressed model, or export it in"
                    " the original's order",
                )


def other_preprocessing(known: KnownToRules) -> Iterator[Cause]:
    """Yield a preprocessing with which the file decides as the original."""
    found = known.figures.reading
    if found is not None and any(map(file_does_harm, known.figures.devices)):
        yield Cause(
            rule="preprocessing",
            sentence=f"The compressed model is made for other inputs: {found.description}, it"
            " decides as the original",
            evidence=f"so on {found.how_often}",
            next_step="convert it with the original's preprocessing, or prepare its inputs so on"
            " the device",
        )


def cut_off_range(known: KnownToRules) -> Iterator[Cause]:
    """Yield values of the input, a layer or an output that a range cuts off."""
    for fault in known.of_kinds("input-range", "cut-off"):
        yield _of_fault("range", fault, known)
    for device in known.figures.devices:
        systematic = device.decisions.systematic
        if systematic is None or not file_does_harm(device):
            continue
        for side in systematic.clipped:
            beyond = "above" if side.side == "high" else "below"
            yield Cause(
                rule="range",
                sentence=f"The output {side.output} is cut off at {significant(side.end, 4)}:"
                f" {side.share:.0%} of what the original puts out lies {beyond}",
                evidence=outcome(device),
                next_step="calibrate again with inputs that reach its whole range",
            )


def faulty_layer(known: KnownToRules) -> Iterator[Cause]:
    """Yield layers with other constants, or with coarse quantization."""
    for fault in known.of_kinds("coarse", "constants"):
        yield _of_fault("layer", fault, known)


def _of_fault(rule: Rule, fault: FileFault, known: KnownToRules) -> Cause:
    return Cause(
        rule=rule,
        sentence=capitalized(fault.sentence),
        evidence=outcome(known.figures.devices[0]) if known.figures.devices else "",
        next_step=fault.next_step,
    )
