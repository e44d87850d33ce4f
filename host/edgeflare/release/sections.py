"""The sections of a check: what was looked into, how that ended, and what else would look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Final, Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.pages.facts import count_of, number, significant
from edgeflare.release.causes.cause import OF_THE_FILE, Cause, Rule
from edgeflare.release.device_words import odd_of_devices, sure_of_devices
from edgeflare.release.figures.check_figures import CheckFigures, CostFigures, SearchedModel
from edgeflare.release.figures.data import DataFigures
from edgeflare.release.figures.device_figures import DeviceFigures, OutputFigures
from edgeflare.release.figures.file import FileFigures, SeenLayers
from edgeflare.release.gates import CheckGate
from edgeflare.release.harm import UNSEEN, counted_faults, far_unread
from edgeflare.statistics.proportion import ShareEstimate, share

Named = Callable[[str], str]
"""Returns a command about what is checked, by the command's name; empty where there is none."""

SectionName = Literal[
    "data",
    "decisions",
    "numbers",
    "file",
    "layers",
    "device",
    "field",
    "near",
    "cost",
    "mend",
]

SectionState = Literal["pass", "attention", "fail", "not-checked"]

STATES: Final[Mapping[SectionState, str]] = {
    "pass": "✔ pass",
    "attention": "? attention",
    "fail": "✖ fail",
    "not-checked": "– not checked",
}
"""How a section ended, with its mark."""


class CheckSection(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was looked into, or was not.

    Attributes:
        name: what.
        state: how it ended.
        sentence: a sentence without its full stop; of what was not checked why not.
        seen: the figure that it is about; null without one.
        command: what looks into it further, or would check it; empty where nothing does.

    """

    name: SectionName
    state: SectionState
    sentence: str
    seen: ShareEstimate | None = None
    command: str = ""


def sections_of(
    figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None, named: Named
) -> tuple[CheckSection, ...]:
    """Return the sections.

    Args:
        figures: what was measured.
        gates: how they ended.
        cause: what is wrong; None where nothing was found.
        named: returns a command about the pair on the first device, by the command's name; empty
            where that takes no such thing.

    """
    if figures.drawn:
        return (
            *(_missing(name, "there is no original and no data") for name in _OF_DATA),
            _drawn_numbers(figures),
            _drawn_device(figures, cause, named),
        )
    return (
        _data(figures, gates, cause),
        _decisions(figures, gates, cause),
        _numbers(figures),
        _file(figures, cause),
        _layers(figures, cause, named),
        _device(figures, gates, cause, named),
        _field(figures, gates, cause, named),
        _near(figures, named),
        _cost(figures),
        _mend(figures, gates, cause, named),
    )


_OF_DATA: Final[tuple[SectionName, ...]] = ("data", "decisions")
"""The sections that need an original and data."""


def _drawn_numbers(figures: CheckFigures) -> CheckSection:
    said = [
        f"{output.output}: {_apart(output.error)} by kernels, {output.share_at_limits:.0%} at its"
        " ends"
        for device in figures.drawn
        for output in device.outputs[:2]
    ]
    odd = [
        f"{output.output} is the same for all inputs, on the host too"
        for device in figures.drawn
        for output in device.outputs
        if output.constant and output.constant_on_host
    ]
    return CheckSection(
        name="numbers", state="attention" if odd else "pass", sentence="; ".join([*odd[:1], *said])
    )


def _drawn_device(figures: CheckFigures, cause: Cause | None, named: Named) -> CheckSection:
    command = named("conform")
    if cause is not None:
        words = "; ".join((cause.sentence, *sure_of_devices(figures)))
        return CheckSection(name="device", state="fail", sentence=words, command=command)
    odd = list(odd_of_devices(figures))
    layers = figures.layers
    seen = f"{count_of(layers.layers, 'layer')} by themselves and" if layers else "the outputs of"
    inputs = sum(device.inputs for device in figures.drawn)
    own = sum(device.samples for device in figures.drawn)
    of_them = f", {own} of them pictures or sounds of the package" if own else ""
    computed = f"{seen} the whole model are as on the host, on {count_of(inputs, 'input')}{of_them}"
    return CheckSection(
        name="device",
        state="attention" if odd else "pass",
        sentence="; ".join((computed, *odd[:_MOST_ODD], *sure_of_devices(figures))),
        command=command,
    )


_MOST_ODD: Final = 3
"""Odd things of devices that are said in a section; the page has them all."""


SECTION_OF: Final[Mapping[Rule, SectionName]] = {
    "data": "data",
    "failures": "decisions",
    "file": "file",
    "stages": "device",
    "kernels": "device",
    "order": "decisions",
    "preprocessing": "decisions",
    "range": "layers",
    "layer": "layers",
    "class": "decisions",
    "one-sided": "decisions",
    "field": "field",
    "accuracy": "decisions",
    "changes": "decisions",
    "gate": "decisions",
}
"""The section that a rule is about."""


def _about(cause: Cause | None, name: SectionName) -> Cause | None:
    """Return a cause where it is about a section."""
    return cause if cause is not None and SECTION_OF[cause.rule] == name else None


def _missing(name: SectionName, why: str, command: str = "") -> CheckSection:
    return CheckSection(name=name, state="not-checked", sentence=why, command=command)


def _data(figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None) -> CheckSection:
    data = figures.data
    if data is None:
        return _missing("data", "the arms were not asked")
    if its := _about(cause, "data"):
        return CheckSection(name="data", state="fail", sentence=its.sentence)
    asked = f"{data.inputs} of {count_of(data.available, 'input')}"
    alike = [*_not_varied(data)]
    if data.right is None:
        words = "; ".join((f"{asked}, none of them labelled", *alike))
        return CheckSection(name="data", state="attention", sentence=words)
    guessing = (
        "" if data.guessing_accuracy is None else f", guesses on {data.guessing_accuracy:.0%}"
    )
    seen = share(data.right, data.labelled)
    words = f"{asked}; the {data.reference} is right on {seen.value:.1%}{guessing}"
    more = "; ".join((words, *_enough(gates)))
    if alike:
        more = "; ".join((*alike, more))
    return CheckSection(
        name="data", state="attention" if alike else "pass", sentence=more, seen=seen
    )


def _not_varied(data: DataFigures) -> Iterator[str]:
    """Yield in which way the inputs say less than their number, a sentence each."""
    repeated = 0 if data.different is None else data.inputs - data.different
    if repeated > _FEW_REPEATED * data.inputs:
        yield f"{repeated} of {count_of(data.inputs, 'input')} are repeated ones"
    if data.classes is not None and data.task_classes is not None:
        missing = data.task_classes - data.classes
        if missing > 0 and data.labelled >= _EACH_CLASS * data.task_classes:
            yield f"{missing} of {data.task_classes} classes are no input's label"


_FEW_REPEATED: Final = 0.05
"""Share of inputs that are repeated ones from which on that is said."""

_EACH_CLASS: Final = 5
"""Times as many labelled inputs as classes from which on a class without one is said."""


def _enough(gates: Sequence[CheckGate]) -> Iterator[str]:
    """Yield how many inputs would decide what is open, a sentence."""
    needed = [gate for gate in gates if gate.inputs_to_decide is not None]
    if needed:
        most = max(needed, key=lambda gate: gate.inputs_to_decide or 0)
        yield f"{most.inputs_to_decide:,} like these would decide all gates"


def _decisions(
    figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None
) -> CheckSection:
    if not figures.devices:
        return _missing("decisions", "the arms were not asked")
    judged = [gate for gate in gates if gate.name in _OF_DECISIONS]
    worst = max(figures.devices, key=lambda device: device.decisions.changes.how_bad).decisions
    said, changes = _most_telling(judged), worst.changes
    words = f"{changes.strictly} of {worst.inputs} changed"
    seen = share(changes.strictly, worst.inputs) if worst.inputs else None
    if said is not None:
        unchecked = said.state == "not-checked"
        words = f"{words}; {said.sentence}" if unchecked else f"{words}, {said.sentence}"
        seen = seen if unchecked else said.seen
    of_task = _by_arm(worst.measure, worst.distance) + _by_arm(worst.pooled_measure, worst.pooled)
    return CheckSection(
        name="decisions",
        state=_state_of_decisions(judged, cause),
        sentence=f"{words}{of_task}",
        seen=seen,
    )


def _by_arm(measure: str, values: Mapping[Arm, float]) -> str:
    """Return a measure of the task for each arm, to be said behind something."""
    measured = ", ".join(f"{arm} {significant(value, 4)}" for arm, value in values.items())
    return f"; {measure}: {measured}" if measured else ""


_OF_DECISIONS: Final = ("failures", "accuracy-drop", "net-harm", "class-loss", "changed")
"""The gates that are about decisions."""


def _most_telling(judged: Sequence[CheckGate]) -> CheckGate | None:
    """Return the first gate that fails, or else is beyond its limit, or is about accuracy."""
    failed = (gate for gate in judged if gate.state == "fail")
    beyond = (gate for gate in judged if not gate.within)
    accuracy = (gate for gate in judged if gate.name == "accuracy-drop")
    return next(chain(failed, beyond, accuracy, judged), None)


def _state_of_decisions(judged: Sequence[CheckGate], cause: Cause | None) -> SectionState:
    if cause is not None and cause.rule == "changes":
        return "attention"
    if _about(cause, "decisions") or any(gate.state == "fail" for gate in judged):
        return "fail"
    return "pass" if all(gate.within for gate in judged) else "attention"


def _numbers(figures: CheckFigures) -> CheckSection:
    if not figures.devices:
        return _missing("numbers", "the arms were not asked")
    outputs = sorted(figures.devices[0].outputs, key=_least_alike)
    if not outputs:
        return _missing("numbers", "there was no time for them")
    said = [
        f"{output.output}: {_apart(output.compression)} by compression, {_apart(output.kernels)} by"
        " kernels"
        if output.compression is not None
        else f"{output.output}: {_apart(output.kernels)} by kernels"
        for output in outputs[:2]
    ]
    more = len(outputs) - len(said)
    rest = f"; and {count_of(more, 'more output')}" if more > 0 else ""
    clipped = [
        clipped_output
        for device in figures.devices
        for clipped_output in (
            device.decisions.systematic.clipped if device.decisions.systematic else ()
        )
    ]
    far = [*far_unread(figures)][:1]
    cut = f"; {clipped[0].output} is cut off at {significant(clipped[0].end, 4)}" if clipped else ""
    return CheckSection(
        name="numbers",
        state="attention" if clipped or far else "pass",
        sentence=f"{'; '.join([*said, *far])}{rest}{cut}{_score(figures)}",
    )


def _least_alike(output: OutputFigures) -> float:
    """Return the SQNR of an output by compression, or by kernels; infinity where it is equal."""
    found = output.compression or output.kernels
    return inf if found is None or found.snr_db is None else found.snr_db


def _score(figures: CheckFigures) -> str:
    """Return how much higher a device scores what is decided, of the device with the most."""
    found = [device.score for device in figures.devices if device.score is not None]
    if not found:
        return ""
    most = max(found, key=lambda error: abs(error.median))
    effect = "" if most.effect is None else f", effect size {number(most.effect, 2, '+')}"
    median, low, high = (significant(end, 2, "+") for end in (most.median, most.low, most.high))
    return f"; {most.score} {median} ({low} to {high}){effect}"


def _apart(found: LayerError | None) -> str:
    if found is None or not (found.inputs or found.not_finite):
        return "nothing known"
    if found.not_finite and not found.inputs:
        return "not finite"
    if found.snr_db is None:
        return "equal"
    return f"{found.snr_db:.1f} dB"


def _file(figures: CheckFigures, cause: Cause | None) -> CheckSection:
    file = figures.file
    if file is None:
        return _missing("file", "the files were not read")
    if its := _about(cause, "file"):
        return CheckSection(name="file", state="fail", sentence=its.sentence)
    counted = [
        counted_fault.sentence
        for counted_fault in counted_faults(figures)
        if counted_fault in file.faults
    ]
    if counted:
        return CheckSection(name="file", state="fail", sentence=counted[0])
    found = [*(f"{fault.sentence}, {UNSEEN}" for fault in file.faults), *file.notes]
    if found:
        return CheckSection(name="file", state="attention", sentence=found[0])
    return CheckSection(
        name="file", state="pass", sentence="no input is unread, no option is another one"
    )


def _layers(figures: CheckFigures, cause: Cause | None, named: Named) -> CheckSection:
    command = named("layers")
    layers = figures.layers
    if layers is None:
        return _missing("layers", figures.missing.get("layers", "they were not looked into"))
    if its := _about(cause, "layers"):
        return CheckSection(name="layers", state="fail", sentence=its.sentence, command=command)
    if layers.faults:
        counted = [
            counted_fault
            for counted_fault in counted_faults(figures)
            if counted_fault in layers.faults
        ]
        words = counted[0].sentence if counted else f"{layers.faults[0].sentence}, {UNSEEN}"
        state: SectionState = "fail" if counted else "attention"
        return CheckSection(name="layers", state=state, sentence=words, command=command)
    said = [*_most_sensitive(layers), *_explained(figures, layers)] or [*layers.notes]
    return CheckSection(
        name="layers",
        state="pass",
        sentence="; ".join(said) or "no layer stands out",
        command=command,
    )


def _most_sensitive(layers: SeenLayers) -> Iterator[str]:
    if not layers.worst:
        yield from filter(None, (layers.sensitive,))
        return
    named = ", ".join(f"{layer.layer} ({layer.changed})" for layer in layers.worst)
    inputs = count_of(layers.worst[0].inputs, "decision")
    yield f"the most sensitive, each with how many of {inputs} it changes by itself: {named}"


def _explained(figures: CheckFigures, layers: SeenLayers) -> Iterator[str]:
    """Yield what is to blame for the changed inputs that were looked into, grouped."""
    changed = [
        changed_input
        for device in figures.devices
        for changed_input in device.decisions.changed_inputs
    ]
    kernels = sum(changed_input.by_kernels for changed_input in changed)
    found = [
        f"{explained_changes.inputs} by {explained_changes.description}"
        for explained_changes in layers.explained
    ]
    if found or kernels:
        alone = [f"{kernels} by kernels alone"] if kernels else []
        yield f"of the changed inputs that were looked into, {', '.join((*found, *alone))}"


def _device(
    figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None, named: Named
) -> CheckSection:
    command = named("conform")
    if not figures.devices:
        return _missing("device", "it was not asked", command)
    worst = max(figures.devices, key=_by_kernels)
    changes = worst.kernels.changes
    seen = share(changes.strictly, changes.inputs) if changes.inputs else None
    if its := _about(cause, "device"):
        words = "; ".join((its.sentence, *sure_of_devices(figures)))
        return CheckSection(name="device", state="fail", sentence=words, seen=seen, command=command)
    odd = list(odd_of_devices(figures))
    mine = [gate for gate in gates if gate.name == "kernel-changes"]
    failed = any(gate.state == "fail" for gate in mine)
    doubtful = odd or not all(gate.within for gate in mine)
    state: SectionState = "fail" if failed else "attention" if doubtful else "pass"
    computed = f"{changes.strictly} of {changes.inputs} decisions are others than the host's"
    return CheckSection(
        name="device",
        state=state,
        sentence="; ".join((computed, *odd[:_MOST_ODD], *sure_of_devices(figures))),
        seen=seen,
        command=command,
    )


def _by_kernels(device: DeviceFigures) -> float:
    changes = device.kernels.changes
    return changes.strictly / max(1, changes.inputs)


def _field(
    figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None, named: Named
) -> CheckSection:
    command = named("survey")
    known = figures.field
    if known is None:
        why = figures.missing.get("field", "no condition was tried")
        return _missing("field", why, command)
    if its := _about(cause, "field"):
        return CheckSection(name="field", state="fail", sentence=its.sentence, command=command)
    tried = f"{known.working} of {count_of(known.cells, 'cell')} in which the original works"
    if not known.working:
        return _missing("field", tried, command)
    failed = any(gate.name == "field-loss" and gate.state == "fail" for gate in gates)
    said = next((gate.sentence for gate in gates if gate.name == "field-loss"), tried)
    return CheckSection(
        name="field",
        state="fail" if failed else "pass",
        sentence=f"{said}; {tried}",
        command=command,
    )


def _near(figures: CheckFigures, named: Named) -> CheckSection:
    command = named("search")
    known = figures.near
    if known is None:
        why = figures.missing.get("near", "no input near to these was searched for")
        return _missing("near", why, command)
    model, reference = known.model, known.reference
    said = (
        f"{model.found} of {model.seeds} inputs lead to one that is decided otherwise,"
        f" {_nearness(model)}; {reference.found} with good int8 of this network,"
        f" {_nearness(reference)}"
    )
    return CheckSection(
        name="near",
        state="pass" if known.as_near else "attention",
        sentence=said if known.as_near else f"nearer than with good int8 of this network: {said}",
        command=command,
    )


def _nearness(model: SearchedModel) -> str:
    return "none" if model.nearness_db is None else f"at {model.nearness_db:.0f} dB"


def _cost(figures: CheckFigures) -> CheckSection:
    sizes = "" if figures.file is None else _sizes(figures.file)
    times = [_time(cost) for cost in figures.costs if cost.compressed is not None]
    said = [*times[:1], *filter(None, (sizes,))]
    if not said:
        return _missing("cost", "it was not measured")
    gains = [
        *(["compression gains no time"] if any(map(_no_faster, figures.costs)) else ()),
        *(["compression gains no space"] if figures.file and _no_smaller(figures.file) else ()),
    ]
    return CheckSection(
        name="cost",
        state="attention" if gains else "pass",
        sentence="; ".join((*gains, *said)),
    )


def _no_smaller(file: FileFigures) -> bool:
    return file.original_bytes is not None and file.compressed_bytes >= file.original_bytes


def _no_faster(cost: CostFigures) -> bool:
    """Whether the compressed model surely takes as long as its original, or longer."""
    return cost.ratio_low is not None and cost.ratio_low >= 1.0


def _sizes(file: FileFigures) -> str:
    after = f"{file.compressed_bytes:,} bytes"
    return after if file.original_bytes is None else f"{after} instead of {file.original_bytes:,}"


def _time(cost: CostFigures) -> str:
    assert cost.compressed is not None  # noqa: S101 - those without are left out
    before = (
        ""
        if cost.original is None
        else f" instead of {significant(1e3 * cost.original.median_seconds)} ms"
    )
    each = f" for the {cost.inferences} inferences of an input" if cost.inferences > 1 else ""
    return f"{significant(1e3 * cost.compressed.median_seconds)} ms{before}{each}"


def _mend(
    figures: CheckFigures, gates: Sequence[CheckGate], cause: Cause | None, named: Named
) -> CheckSection:
    known = figures.mend
    if cause is None and not figures.cut and all(gate.within for gate in gates):
        return CheckSection(name="mend", state="pass", sentence="there is nothing to mend")
    if cause is None or cause.rule not in OF_THE_FILE:
        return _missing("mend", "no number in the file is known to be to blame")
    if known is None:
        command = named("check --mend") if figures.mendable else ""
        return _missing("mend", _why_not_mended(figures), command)
    cut = "; there was no time to try all candidates" if "mend" in figures.cut else ""
    return CheckSection(
        name="mend",
        state="pass" if known.written else "attention",
        sentence=f"{known.in_words()}{cut}",
        seen=known.gain,
        command=named("repair"),
    )


def _why_not_mended(figures: CheckFigures) -> str:
    if "mend" in figures.cut:
        return "there was no time for a repair: give a longer --time-limit"
    return figures.missing.get("mend", "what a repair at equal cost gives is tried with --mend")
