"""Why a model may not ship: rules over what was measured, of which the first that applies decides.

An earlier rule makes the later ones meaningless: where the data are wrong no accuracy says
anything, where outputs are not finite no order of classes does, and where the device prepares its
inputs otherwise no layer is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Literal

import msgspec

from edgeflare.check.estimate import share
from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.check.figures.data import DataFigures, OtherReading
from edgeflare.check.figures.device import DeviceFigures, OperatorFault, StageFigures
from edgeflare.check.figures.file import FaultKind, FileFault
from edgeflare.check.gates import (
    SURELY,
    CheckGate,
    counted_faults,
    failure_here,
    file_does_harm,
    otherwise_here,
)
from edgeflare.core.answer import PROBABILITY
from edgeflare.core.query import Arm
from edgeflare.pages.facts import count_of
from edgeflare.run.exact_statistics import sign_test

Rule = Literal[
    "data",
    "failures",
    "file",
    "stages",
    "kernels",
    "order",
    "preprocessing",
    "range",
    "layer",
    "class",
    "one-sided",
    "field",
    "accuracy",
    "changes",
    "gate",
]
"""What a cause is, by the rule that found it."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a model may not ship, or why nothing can be said.

    Attributes:
        rule: rule that found it.
        words: what is wrong, a sentence without its full stop.
        evidence: what shows it, with the measurement that would refute it, likewise.
        next: what to do about it, likewise.

    """

    rule: Rule
    words: str
    evidence: str
    next: str


UNDECIDED: Final[frozenset[Rule]] = frozenset({"data", "changes"})
"""Rules by which nothing can be said of the model, for good or for ill."""

OF_THE_FILE: Final[frozenset[Rule]] = frozenset(
    {"file", "range", "layer", "class", "one-sided", "field", "accuracy", "gate"}
)
"""Rules by which the numbers in the compressed file are to blame, so that others may mend it."""

LEAST_INPUTS: Final = 20
"""Inputs below which nothing is decided."""


def find_cause(figures: CheckFigures, gates: tuple[CheckGate, ...]) -> Cause | None:
    """Return the first cause that applies; None where the model may ship, as far as is known.

    Args:
        figures: what was measured.
        gates: how the gates ended that it is held to.

    """
    known = _KnownToRules(figures, gates, tuple(counted_faults(figures)))
    return next(chain.from_iterable(rule(known) for rule in _RULES), None)


@dataclass(frozen=True, slots=True)
class _KnownToRules:
    """What the rules look at.

    Attributes:
        figures: what was measured.
        gates: how they ended.
        faults: those that count.

    """

    figures: CheckFigures
    gates: tuple[CheckGate, ...]
    faults: tuple[FileFault, ...]

    def fails(self, name: str, device: DeviceFigures | None = None) -> bool:
        """Whether a gate fails, on a device."""
        where = "" if device is None else device.decisions.device
        return any(
            one.name == name and one.device == where and one.state == "fail" for one in self.gates
        )

    def fails_anywhere(self, name: str) -> bool:
        """Whether a gate fails on some device."""
        return any(one.name == name and one.state == "fail" for one in self.gates)

    def of_kinds(self, *kinds: FaultKind) -> Iterator[FileFault]:
        """Yield the faults of some kinds."""
        return (one for one in self.faults if one.kind in kinds)


_MANY: Final = 0.05
"""Share of inputs that the original may fail on, or whose decision may change where nobody knows
what is right, before nothing can be said of the model."""


def _data(known: _KnownToRules) -> Iterator[Cause]:
    data = known.figures.data
    if data is None:
        return
    for device in known.figures.devices[:1]:
        failed = device.decisions.failures(data.reference)
        if failed > _MANY * data.inputs:
            yield Cause(
                rule="data",
                words=f"The {data.reference} itself has no finite answer to {failed} of"
                f" {count_of(data.inputs, 'input')}",
                evidence=device.decisions.begins or "nothing can be held against it",
                next=f"mend the {_MODELS[data.reference]} first, or check the inputs",
            )
    if data.label_order is not None and data.label_order.after >= _AGREES:
        yield Cause(
            rule="data",
            words=f"The labels have the classes in another order than the {data.reference} has"
            " them",
            evidence=str(data.label_order),
            next="correct the labels, and check again; those of sub-folders by a labels.txt beside"
            " them, a line for each score",
        )
    if data.other_reading is not None:
        yield Cause(
            rule="data",
            words=f"The {data.reference} was not trained on inputs as the pair prepares them",
            evidence=_of_reading(data.other_reading),
            next="say in [preprocess] what it was trained on, and check again",
        )
    if data.right is None and data.inputs >= LEAST_INPUTS:
        yield from _unlabelled(data)
    yield from _at_chance(data)


def _at_chance(data: DataFigures) -> Iterator[Cause]:
    """Yield why an arm that others are held against knows too little for that."""
    if data.right is None or data.labelled < LEAST_INPUTS:
        return
    if data.right == 0:
        yield Cause(
            rule="data",
            words=f"The {data.reference} is right on none of {data.labelled} inputs, which leaves"
            " nothing to lose",
            evidence="the labels, the preprocessing, or a tolerance do not fit it",
            next="look whether they belong to the model, or allow more in [task]",
        )
    if data.by_guessing is None:
        return
    seen = share(data.right, data.labelled)
    if seen.value - data.by_guessing < _BETTER * (1.0 - data.by_guessing):
        yield Cause(
            rule="data",
            words=f"The {data.reference} is not better than guessing",
            evidence=f"it is right on {seen.value:.1%} of {data.labelled} inputs ({seen.low:.1%} to"
            f" {seen.high:.1%}), and guesses as frequent as its decisions would be on"
            f" {data.by_guessing:.1%}",
            next="look whether labels, preprocessing and model belong together",
        )


_MODELS: Final = {Arm.ORIGINAL: "original", Arm.TWIN: "compressed model"}


def _unlabelled(data: DataFigures) -> Iterator[Cause]:
    """Yield why inputs without labels tell nothing."""
    if data.guessed and data.reference is Arm.ORIGINAL:  # kernels do not hang on it
        yield Cause(
            rule="data",
            words="How the inputs are prepared is a guess, and without labels nobody sees whether"
            " it is right",
            evidence=data.guessed,
            next="say --preset, or --mean and --std, or give labels",
        )
    if data.alike is not None and data.alike >= _ALIKE:
        yield Cause(
            rule="data",
            words=f"The {data.reference} gives the same answer to {data.alike:.0%} of the inputs",
            evidence="such inputs, or inputs prepared so, cannot show what compression changes",
            next="give inputs that vary, with labels, or correct [preprocess]",
        )


_ALIKE: Final = 0.95
"""Share of the inputs with one decision from which on unlabelled ones tell nothing."""


def _few(known: _KnownToRules) -> Iterator[Cause]:
    data, inputs = known.figures.data, known.figures.fewest_inputs
    if data is not None and inputs < LEAST_INPUTS:
        cut_off = inputs < data.of
        yield Cause(
            rule="data",
            words=f"{count_of(inputs, 'input')} cannot decide anything",
            evidence=f"{LEAST_INPUTS} are the least, some hundreds decide most",
            next="go on with --resume, and a larger --budget"
            if cut_off
            else "give more inputs with --inputs, with labels where there are some",
        )


_MOST: Final = 0.3
"""Likewise a share that no compression may change, whatever is right."""

_AGREES: Final = 0.7
"""Agreement from which on another order of classes or labels explains what is wrong: one that is
found for a few classes of a model at chance, or of another network, does not."""

_BETTER: Final = 0.15
"""Part of the way from guessing to being always right that an original has to have gone: Cohen's
kappa."""


def _of_reading(found: OtherReading) -> str:
    whose = "right" if found.against == "labels" else "as the original"
    before, after = found.before / found.inputs, found.after / found.inputs
    return (
        f"{found.words} its answers are {whose} on {after:.0%} of {found.inputs} inputs instead of"
        f" {before:.0%}"
    )


def _drawn(known: _KnownToRules) -> Iterator[Cause]:
    for one in known.figures.drawn:
        if 2 * one.answered < one.inputs:
            yield Cause(
                rule="data",
                words=f"The host itself has a finite answer to {one.answered} of {one.inputs} drawn"
                " inputs alone",
                evidence="so few say nothing of the device",
                next="give inputs as the model is made for, with --inputs",
            )
        name, failure = one.device.name, failure_here(one)
        other = otherwise_here(one, known.figures.layers)
        if not (failure or other):
            continue
        errors = [output.error for output in one.outputs if output.error is not None]
        far = min((its.sqnr_db for its in errors if its.sqnr_db is not None), default=None)
        equal = "the whole output is the host's"
        yield Cause(
            rule="failures" if failure else "kernels",
            words=f"{name} does not compute the file as the host does: {failure or other}",
            evidence=equal if far is None else f"the whole output is {far:.0f} dB from the host's",
            next="use other kernels or a later runtime there, or replace the operator",
        )


def _failures(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        its = device.decisions
        arms = [arm for arm in (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE) if its.failed.get(arm)]
        if not known.fails("failures", device):
            continue
        kinds = sorted({kind for arm in arms for kind in its.failed[arm]})
        whose = {
            (Arm.DEVICE,): f"{its.device} alone",
            (Arm.TWIN, Arm.DEVICE): "The compressed file",
            (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE): "The original like the file made from it",
        }.get(tuple(arms), "One of " + " and ".join(arms))
        what = "puts out NaN or infinity" if kinds == ["nan"] else f"fails ({', '.join(kinds)})"
        spared = [str(arm) for arm in its.right if arm not in arms]
        others = f"the {' and the '.join(spared)} never" if spared else ""
        layers = known.of_kinds("not finite")
        where = its.begins or "; ".join(one.words for one in layers)
        advice = next((one.advice for one in known.of_kinds("not finite")), "")
        yield Cause(
            rule="failures",
            words=f"{whose} {what} on {its.failures(Arm.DEVICE, Arm.TWIN)} of"
            f" {count_of(its.inputs, 'input')}",
            evidence="; ".join(filter(None, (others, where))),
            next=advice or "ask `edgeflare explain` for the operator in which it begins",
        )


def _file(known: _KnownToRules) -> Iterator[Cause]:
    for one in known.of_kinds(
        *("unread input", "not finite", "overflow", "flushed constant", "options"),
        *("copied scale", "raw state", "state scale"),
    ):
        yield _of_fault("file", one, known)


def _of_fault(rule: Rule, fault: FileFault, known: _KnownToRules) -> Cause:
    return Cause(
        rule=rule,
        words=fault.words[:1].upper() + fault.words[1:],
        evidence=_outcome(known.figures.devices[0]) if known.figures.devices else "",
        next=fault.advice,
    )


def _reference(known: _KnownToRules) -> str:
    data = known.figures.data
    return "original" if data is None else str(data.reference)


def _outcome(device: DeviceFigures) -> str:
    """Return what the decisions come to on a device, beside the reference."""
    its = device.decisions
    if its.labelled and Arm.ORIGINAL in its.right:
        first, here = (its.right[arm] / its.labelled for arm in (Arm.ORIGINAL, Arm.DEVICE))
        return (
            f"right on {here:.1%} of {count_of(its.labelled, 'input')} on {its.device} instead of"
            f" {first:.1%}"
        )
    whose = "the twin's" if its.by_file is None else "the original's"
    return (
        f"{its.changes.changed} of {count_of(its.inputs, 'decision')} on {its.device} are others"
        f" than {whose}"
    )


def _stages(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        its = device.kernels.stages
        if its is None or not _stages_do_harm(its):
            continue
        where = [
            *(["[device.preprocess]"] if its.given else ()),
            *(["[device.task]"] if its.decided else ()),
        ]
        what = "prepares inputs" if its.given else "reads outputs"
        said = f": {'; '.join(its.settings[:_SETTINGS])}" if its.settings else ""
        evidence = f"with the pair's own stages {its.changed} of {its.inputs} decisions are others"
        if its.labelled:
            evidence = (
                f"right on {its.right / its.labelled:.1%} of {count_of(its.labelled, 'input')}, and"
                f" on {its.right_as_pair / its.labelled:.1%} with the pair's own stages"
            )
        yield Cause(
            rule="stages",
            words=f"{device.decisions.device} {what} otherwise than the pair says"
            f" ({' and '.join(where) or '[device]'}{said})"
            + ("" if file_does_harm(device) else "; the compressed file is fine"),
            evidence=evidence,
            next="let the device do what the pair says, or fold it into the model",
        )


_SETTINGS: Final = 3
"""Settings of a device's own that a sentence names."""


def _stages_do_harm(its: StageFigures) -> bool:
    """Whether stages of the device's own harm, or change many decisions where nobody knows."""
    many = share(its.changed, its.inputs).low > _FEW
    if not its.labelled:
        return many
    surely = many or sign_test(its.helped, its.harmed) < SURELY
    return its.harmed > its.helped and surely


_FEW: Final = 0.02
"""Share of decisions that may change by stages of a device without a word."""


def _kernels(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        name, changes = device.decisions.device, device.kernels.changes
        layers = known.figures.layers
        wrong = () if layers is None else layers.on_device.get(name, ())
        alone = device.decisions.by_file is None
        unsteady = device.kernels.undecided > 0
        if not (known.fails("kernel-changes", device) or (alone and wrong) or unsteady):
            continue
        evidence = (
            f"{changes.strictly} of {changes.inputs} decisions are others than the host's, for the"
            f" same file; {_outcome(device)}"
        )
        its, reading = device.kernels, device.kernels.reading
        if its.undecided or (its.unsteady and not wrong):
            yield Cause(
                rule="kernels",
                words=f"{name} does not give the same twice: {its.unsteady} of {its.repeated}"
                " inputs have other outputs the second time",
                evidence=evidence,
                next="look for what is shared between two inferences there, such as a buffer",
            )
        elif reading is not None and not wrong:
            yield Cause(
                rule="stages",
                words=f"{name} gives the model other inputs than the pair says: {reading.words}"
                " the host decides as it does",
                evidence=f"so on {reading.after / reading.inputs:.0%} of {reading.inputs} inputs"
                f" instead of {reading.before / reading.inputs:.0%}; {evidence}",
                next="correct what stands before the model on the device",
            )
        found = "; ".join(filter(None, (evidence, _conformance(known.figures, name, wrong))))
        yield Cause(
            rule="kernels",
            words=f"{name} does not compute the file as the host does{_where(known.figures, name)}",
            evidence=found,
            next="use other kernels or a later runtime there, or replace the operator",
        )


def _where(figures: CheckFigures, device: str) -> str:
    """Return which operators a device computes otherwise, in words; empty where that is not known.

    What is wrong on the pair's own inputs says most, then what is on values that were drawn.
    """
    layers = figures.layers
    wrong = () if layers is None else layers.on_device.get(device, ())
    if wrong:
        return f": {wrong[0]}{f' and {len(wrong) - 1} more' if len(wrong) > 1 else ''}"
    joined = () if layers is None else layers.together.get(device, ())
    if joined:
        return f": {' and '.join(joined)} are right by themselves, and wrong together"
    for one in _faults_as_they_stand(figures, device):
        return f": {one} by itself, on values that were drawn for it"
    if layers is not None and device in layers.on_device:
        return f": each of its {layers.layers} layers is right by itself, and not all together"
    return ""


def _conformance(figures: CheckFigures, device: str, wrong: Sequence[str]) -> str:
    """Return what `edgeflare conform` says of the layers that a device computes otherwise."""
    for one in _faults_as_they_stand(figures, device):
        if any(said.startswith(place) for said in wrong for place in one.layers):
            return f"conform finds {one.operator} {one.type} with {one.symptom}{one.when}"
    return ""


def _faults_as_they_stand(figures: CheckFigures, device: str) -> Iterator[OperatorFault]:
    """Yield what is wrong with the model's own operators by themselves on a device."""
    return (
        fault
        for one in figures.operators
        if one.device == device
        for fault in one.faults
        if fault.places
    )


def _threads(known: _KnownToRules) -> Iterator[Cause]:
    """Yield numbers of threads by which devices decide more otherwise than kernels may.

    Items of a batch that depend on each other may be the model's own doing, and are no cause.
    """
    limit = next((one.limit for one in known.gates if one.name == "kernel-changes"), None)
    for device in known.figures.devices:
        for one in device.kernels.variants or ():
            if limit is None or one.kind != "threads" or not one.inputs:
                continue
            if share(one.wrong, one.inputs).low > limit:
                yield Cause(
                    rule="kernels",
                    words=f"{device.decisions.device} decides {one.wrong} of {one.inputs} inputs"
                    f" otherwise {one.way} than on as many as its profile says",
                    evidence=_outcome(device),
                    next="run it with the threads of the profile, and report the kernels",
                )


def _order(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        systematic = device.decisions.systematic
        for order in () if systematic is None else systematic.orders:
            if order.first != "labels" and order.after >= _AGREES:
                words = str(order)
                yield Cause(
                    rule="order",
                    words=words[:1].upper() + words[1:],
                    evidence=_outcome(device),
                    next="use the labels that belong to the compressed model, or export it in the"
                    " original's order",
                )


def _preprocessing(known: _KnownToRules) -> Iterator[Cause]:
    found = known.figures.reading
    if found is not None and any(map(file_does_harm, known.figures.devices)):
        yield Cause(
            rule="preprocessing",
            words=f"The compressed model is made for other inputs: {found.words} it decides as the"
            " original",
            evidence=_of_reading(found),
            next="convert it with the original's preprocessing, or prepare its inputs so on the"
            " device",
        )


def _range(known: _KnownToRules) -> Iterator[Cause]:
    for one in known.of_kinds("input range", "cut off"):
        yield _of_fault("range", one, known)
    for device in known.figures.devices:
        systematic = device.decisions.systematic
        if systematic is None or not file_does_harm(device):
            continue
        for side in systematic.clipped:
            beyond = "above" if side.side == "high" else "below"
            yield Cause(
                rule="range",
                words=f"The output {side.output} is cut off at {side.end:.4g}: {side.share:.0%} of"
                f" what the original puts out lies {beyond}",
                evidence=_outcome(device),
                next="calibrate again with inputs that reach its whole range",
            )


def _layer(known: _KnownToRules) -> Iterator[Cause]:
    for one in known.of_kinds("coarse", "constants"):
        yield _of_fault("layer", one, known)


def _class(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        worst = next(iter(device.decisions.losses), None)
        if worst is not None and known.fails("class-loss", device):
            # Where others lose as well, it is no matter of that class.
            elsewhere = sign_test(worst.helped_elsewhere, worst.harmed_elsewhere)
            if elsewhere < SURELY and worst.harmed_elsewhere > worst.helped_elsewhere:
                continue
            came = f", and takes {worst.came} others for it" if worst.came else ""
            yield Cause(
                rule="class",
                words=f"{worst.name} is lost: {device.decisions.device} decides otherwise on"
                f" {worst.left} of the {worst.inputs} inputs that the {_reference(known)} takes for"
                f" it{came}",
                evidence=f"by a sign test p = {worst.p:.2g}; over all classes {_outcome(device)}",
                next=f"fine-tune or calibrate with more of {worst.name}, and hold each class to a"
                " limit",
            )


def _one_sided(known: _KnownToRules) -> Iterator[Cause]:
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
            words=f"The {one.score} is {side} on {device.decisions.device} on"
            f" {max(one.lower, one.higher)} of {one.lower + one.higher} inputs, by"
            f" {abs(one.median):.3g} in the middle",
            evidence=f"by a sign test p = {one.p:.2g}; {_outcome(device)}",
            next="move the threshold by as much, or calibrate again",
        )


def _field(known: _KnownToRules) -> Iterator[Cause]:
    field = known.figures.field
    limit = next((one.limit for one in known.gates if one.name == "field-loss"), None)
    if field is None or limit is None or known.fails_anywhere("accuracy-drop"):
        return  # what is lost without a condition is no matter of one
    for its, one in islice(field.lost(limit), 1):
        inputs = one.changes.inputs
        here = one.right - one.changes.net
        yield Cause(
            rule="field",
            words=f"Under {one.condition} at severity {one.severity} the compressed model is right"
            f" on {here / inputs:.1%} of {inputs} inputs instead of {one.right / inputs:.1%}",
            evidence=f"by a sign test over {count_of(its.working, 'cell')} p = {one.p:.2g};"
            f" without the condition {its.unchanged.net:.1%} is lost",
            next=f"calibrate or fine-tune with {one.condition} among the inputs",
        )


def _accuracy(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        if not (known.fails("accuracy-drop", device) or known.fails("net-harm", device)):
            continue
        layers = known.figures.layers
        sensitive = "" if layers is None else layers.sensitive
        others = 0 if layers is None else layers.other_constants
        changes = device.decisions.changes
        how = (
            f", as one that was pruned or trained anew: {count_of(others, 'layer')} have other"
            " constants than the original's"
            if others
            else ", and no single layer is to blame"
        )
        if others and changes.strictly > _ANOTHER_NETWORK * changes.inputs:
            yield Cause(
                rule="accuracy",
                words="The compressed model does not seem to be made from this original:"
                f" {count_of(others, 'layer')} have other constants, and"
                f" {changes.strictly} of {changes.inputs} decisions changed",
                evidence=_outcome(device),
                next="look whether both files belong together",
            )
        lost = [one.name for one in device.decisions.losses[:2]]
        yield Cause(
            rule="accuracy",
            words=f"The compressed model is less accurate{how}; {_outcome(device)}",
            evidence="; ".join(
                filter(
                    None,
                    (
                        f"{changes.harmed} inputs harmed, {changes.helped} helped",
                        f"most in {' and '.join(lost)}" if lost else "",
                        sensitive,
                    ),
                )
            ),
            next="prune less, or fine-tune it for longer"
            if others
            else "keep the most sensitive layers in float, or train with quantization",
        )


_ANOTHER_NETWORK: Final = 0.5
"""Share of the decisions that has to change for the compressed model to be another network's, where
most of its layers have other constants: pruning changed 8 % at most of those that were seen."""


def _gates(known: _KnownToRules) -> Iterator[Cause]:
    for one in known.gates:
        if one.state == "fail":
            yield Cause(
                rule="gate",
                words=f"The gate {one.name} fails{one.device and f' on {one.device}'}: {one.words}",
                evidence=f"the limit is {one.limit:g}",
                next="look into the section of that gate",
            )


def _changes(known: _KnownToRules) -> Iterator[Cause]:
    for device in known.figures.devices:
        its = device.decisions
        if its.by_file is None or Arm.ORIGINAL in its.right or not its.inputs:
            continue
        seen = share(its.changes.strictly, its.inputs)
        if seen.low > _MOST:
            yield Cause(
                rule="accuracy",
                words=f"{its.changes.strictly} of {its.inputs} decisions changed",
                evidence="no fault of the file and no kernel explains them",
                next="give inputs with labels, and look whether both models belong together",
            )
        if seen.low > _MANY:
            yield Cause(
                rule="changes",
                words=f"{its.changes.strictly} of {its.inputs} decisions changed, and without"
                " labels nobody can say whether for the worse",
                evidence="no fault of the file and no kernel explains them",
                next="give inputs with labels",
            )


_RULES: Final[tuple[Callable[[_KnownToRules], Iterator[Cause]], ...]] = (
    _data,
    _drawn,
    _failures,
    _file,
    _few,
    _stages,
    _kernels,
    _threads,
    _order,
    _preprocessing,
    _range,
    _layer,
    _class,
    _one_sided,
    _field,
    _accuracy,
    _gates,
    _changes,
)
