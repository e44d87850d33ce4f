"""Causes by what is decided, where no part of the file and no kernel is known to be to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from edgeflare.core.answer import PROBABILITY
from edgeflare.core.query import Arm
from edgeflare.pages.facts import count_of, significant
from edgeflare.release.causes.cause import Cause, KnownToRules, capitalized, layers_seen, outcome
from edgeflare.release.figures.decisions import DecisionFigures
from edgeflare.release.harm import SURELY, file_does_harm
from edgeflare.statistics.binomial import sign_test


def failed_inputs(known: KnownToRules) -> Iterator[Cause]:
    """Yield that inputs have no finite answer, and which arms that is so of."""
    for device in known.figures.devices:
        its = device.decisions
        arms = [arm for arm in (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE) if its.failed.get(arm)]
        if not known.fails("failures", device):
            continue
        spared = [str(arm) for arm in its.right if arm not in arms]
        others = f"the {' and the '.join(spared)} never" if spared else ""
        layers = known.of_kinds("not-finite")
        where = its.begins or "; ".join(layer.sentence for layer in layers)
        advice = next((fault.next_step for fault in known.of_kinds("not-finite")), "")
        yield Cause(
            rule="failures",
            sentence=_failing(its, arms),
            evidence="; ".join(filter(None, (others, where))),
            next_step=advice or "ask `edgeflare explain` for the operator in which it begins",
        )


def _failing(its: DecisionFigures, arms: Sequence[Arm]) -> str:
    """Return which arms fail, how, and on how many inputs, a sentence without its full stop."""
    kinds = sorted({kind for arm in arms for kind in its.failed[arm]})
    what = "puts out NaN or infinity" if kinds == ["nan"] else f"fails ({', '.join(kinds)})"
    whose = {
        (Arm.DEVICE,): f"{its.device} alone",
        (Arm.TWIN,): f"The compressed file on the host, and not on {its.device},",
        (Arm.TWIN, Arm.DEVICE): "The compressed file",
        (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE): "The original like the file made from it",
    }.get(tuple(arms))
    inputs = count_of(its.inputs, "input")
    if whose is not None:
        return f"{whose} {what} on {its.failures(Arm.DEVICE, Arm.TWIN)} of {inputs}"
    each = (f"the {arm} {what} on {its.failures(arm)}" for arm in arms)
    return capitalized(f"{' and '.join(each)} of {inputs}")


def lost_class(known: KnownToRules) -> Iterator[Cause]:
    """Yield a class that is lost where the others are not."""
    data = known.figures.data
    reference = "original" if data is None else str(data.reference)
    for device in known.figures.devices:
        worst = next(iter(device.decisions.losses), None)
        if worst is not None and known.fails("class-loss", device):
            # Where others lose as well, it is no matter of that class.
            elsewhere = sign_test(worst.helped_elsewhere, worst.harmed_elsewhere)
            if elsewhere < SURELY and worst.harmed_elsewhere > worst.helped_elsewhere:
                continue
            came = f", and takes {count_of(worst.came, 'other')} for it" if worst.came else ""
            yield Cause(
                rule="class",
                sentence=f"{worst.name} is lost: {device.decisions.device} decides otherwise on"
                f" {worst.left} of the {worst.inputs} inputs that the {reference} takes for it"
                f"{came}",
                evidence=f"by a sign test p = {worst.p_corrected:.2g}; over all classes"
                f" {outcome(device)}",
                next_step=f"fine-tune or calibrate with more of {worst.name}, and hold each class"
                " to a"
                " limit",
            )


def one_sided_scores(known: KnownToRules) -> Iterator[Cause]:
    """Yield scores that moved to one side."""
    for device in known.figures.devices:
        systematic = device.decisions.systematic
        if systematic is None or not systematic.shifts or not file_does_harm(device):
            continue
        one = systematic.shifts[0]
        if one.score == PROBABILITY and known.fails("accuracy-drop", device):
            continue  # a model that is worse is less sure, whatever made it so
        side = "lower" if one.lower > one.higher else "higher"
        yield Cause(
            rule="one-sided",
            sentence=f"The {one.score} is {side} on {device.decisions.device} on"
            f" {max(one.lower, one.higher)} of {one.lower + one.higher} inputs, by"
            f" {significant(abs(one.median))} in the middle",
            evidence=f"by a sign test p = {one.p_corrected:.2g}; {outcome(device)}",
            next_step="move the threshold by as much, or calibrate again",
        )


def lost_in_the_field(known: KnownToRules) -> Iterator[Cause]:
    """Yield the condition of the field under which most is lost."""
    field = known.figures.field
    limit = known.limit("field-loss")
    if field is None or limit is None or known.fails_anywhere("accuracy-drop"):
        return  # what is lost without a condition is no matter of one
    for its, cell in islice(field.lost(limit), 1):
        inputs = cell.changes.inputs
        here = cell.right - cell.changes.net
        yield Cause(
            rule="field",
            sentence=f"Under {cell.condition} at severity {cell.severity} the compressed model is"
            f" right on {here / inputs:.1%} of {inputs} inputs instead of"
            f" {cell.right / inputs:.1%}",
            evidence=f"by a sign test over {count_of(its.working, 'cell')} p ="
            f" {cell.p_corrected:.2g};"
            f" without the condition {its.unchanged.net:.1%} is lost",
            next_step=f"calibrate or fine-tune with {cell.condition} among the inputs",
        )


def lost_accuracy(known: KnownToRules) -> Iterator[Cause]:
    """Yield that the model is less accurate, though no single layer is to blame."""
    for device in known.figures.devices:
        if not (known.fails("accuracy-drop", device) or known.fails("net-harm", device)):
            continue
        layers = known.figures.layers
        sensitive = "" if layers is None else layers.sensitive
        others = 0 if layers is None else layers.other_constants
        changes = device.decisions.changes
        how = (
            ", and no single layer is to blame"
            if layers_seen(known.figures)
            else ", and its layers were not held against the original's"
        )
        if others:
            how = (
                f", as one that was pruned or trained anew: {count_of(others, 'layer')} have other"
                " constants than the original's"
            )
        if others and changes.strictly > _ANOTHER_NETWORK * changes.inputs:
            yield Cause(
                rule="accuracy",
                sentence="The compressed model does not seem to be made from this original:"
                f" {count_of(others, 'layer')} have other constants, and"
                f" {changes.strictly} of {changes.inputs} decisions changed",
                evidence=outcome(device),
                next_step="look whether both files belong together",
            )
        lost = [loss.name for loss in device.decisions.losses[:2]]
        yield Cause(
            rule="accuracy",
            sentence=f"The compressed model is less accurate{how}; {outcome(device)}",
            evidence="; ".join(
                filter(
                    None,
                    (
                        f"{count_of(changes.harmed, 'input')} harmed, {changes.helped} helped",
                        f"most in {' and '.join(lost)}" if lost else "",
                        sensitive,
                    ),
                )
            ),
            next_step="prune less, or fine-tune it for longer"
            if others
            else "keep the most sensitive layers in float, or train with quantization",
        )


_ANOTHER_NETWORK: Final = 0.5
"""Share of the decisions that has to change for the compressed model to be another network's, where
most of its layers have other constants: pruning changed 8 % at most of those that were seen."""


def failed_gate(known: KnownToRules) -> Iterator[Cause]:
    """Yield the gates that fail and that no other rule is about."""
    for gate in known.gates:
        if gate.state == "fail":
            yield Cause(
                rule="gate",
                sentence=f"The gate {gate.name} fails{gate.device and f' on {gate.device}'}: "
                f"{gate.sentence}",
                evidence=f"the limit is {gate.limit:g}",
                next_step="look into the section of that gate",
            )
