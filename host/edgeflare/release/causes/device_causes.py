"""Causes on a device: what it computes, prepares or reads otherwise than the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from edgeflare.pages.facts import count_of, in_words
from edgeflare.release.causes.cause import Cause, KnownToRules, outcome
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.device_figures import DeviceFigures, OperatorFault, StageFigures
from edgeflare.release.harm import SURELY, failure_here, file_does_harm, otherwise_here
from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.proportion import share


def wrong_on_drawn_inputs(known: KnownToRules) -> Iterator[Cause]:
    """Yield what devices do otherwise than the host on drawn inputs."""
    for figures in known.figures.drawn:
        if 2 * figures.answered < figures.inputs:
            yield Cause(
                rule="data",
                sentence=f"The host itself has a finite answer to {figures.answered} of"
                f" {figures.inputs} drawn inputs alone",
                evidence="so few say nothing of the device",
                next_step="give inputs as the model is made for, with --inputs",
            )
        name, failure = figures.device.name, failure_here(figures)
        other = otherwise_here(figures, known.figures.layers)
        if not (failure or other):
            continue
        far = figures.sqnr_db
        equal = "the whole output is the host's"
        yield Cause(
            rule="failures" if failure else "kernels",
            sentence=f"{name} does not compute the file as the host does: {failure or other}",
            evidence=equal if far is None else f"the whole output is {far:.0f} dB from the host's",
            next_step="use other kernels or a later runtime there, or replace the operator",
        )


def other_stages(known: KnownToRules) -> Iterator[Cause]:
    """Yield devices whose own stages, before and behind the model, do harm."""
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
            sentence=f"{device.decisions.device} {what} otherwise than the pair says"
            f" ({' and '.join(where) or '[device]'}{said})"
            + ("" if file_does_harm(device) else "; the compressed file is fine"),
            evidence=evidence,
            next_step="let the device do what the pair says, or fold it into the model",
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


def other_kernels(known: KnownToRules) -> Iterator[Cause]:
    """Yield devices that do not compute the file as the host does."""
    for device in known.figures.devices:
        name, changes = device.decisions.device, device.kernels.changes
        wrong = known.figures.wrong_layers(name)
        alone = device.decisions.by_file is None
        unsteady = device.kernels.undecided > 0
        if not (known.fails("kernel-changes", device) or (alone and wrong) or unsteady):
            continue
        evidence = (
            f"{changes.strictly} of {changes.inputs} decisions are others than the host's, for the"
            f" same file; {outcome(device)}"
        )
        its, reading = device.kernels, device.kernels.reading
        if its.undecided or (its.unsteady and not wrong):
            yield Cause(
                rule="kernels",
                sentence=f"{name} does not give the same twice: {its.unsteady} of {its.repeated}"
                " inputs have other outputs the second time",
                evidence=evidence,
                next_step="look for what is shared between two inferences there, such as a buffer",
            )
        elif reading is not None and not wrong:
            yield Cause(
                rule="stages",
                sentence=f"{name} gives the model other inputs than the pair says:"
                f" {reading.description}, the host decides as it does",
                evidence=f"so on {reading.how_often}; {evidence}",
                next_step="correct what stands before the model on the device",
            )
        also = _by_the_file(known, device)
        shown = (evidence, _conformance(known.figures, name, wrong), also)
        yield Cause(
            rule="kernels",
            sentence=f"{name} does not compute the file as the host"
            f" does{_where(known.figures, name)}",
            evidence="; ".join(filter(None, shown)),
            next_step="use other kernels or a later runtime there, or replace the operator"
            + ("; neither mends the file" if also else ""),
        )


def _by_the_file(known: KnownToRules, device: DeviceFigures) -> str:
    """Return what is wrong with the file itself, whatever computes it; empty where nothing is."""
    changes = device.decisions.by_file
    if changes is None or not file_does_harm(device):
        return ""
    fault = f": {known.faults[0].sentence}" if known.faults else ""
    return (
        f"on the host the file decides {changes.strictly} of {count_of(changes.inputs, 'input')}"
        f" otherwise than the original{fault}"
    )


def _where(figures: CheckFigures, device: str) -> str:
    """Return which operators a device computes otherwise, in words; empty where that is not known.

    What is wrong on the pair's own inputs says most, then what is on values that were drawn.
    """
    layers, wrong = figures.layers, figures.wrong_layers(device)
    if wrong:
        return f": {wrong[0]}{f' and {len(wrong) - 1} more' if len(wrong) > 1 else ''}"
    joined = () if layers is None else layers.together.get(device, ())
    if joined:
        return f": {' and '.join(joined)} are right by themselves, and wrong together"
    for fault in _faults_as_they_stand(figures, device):
        return f": {fault} by itself, on values that were drawn for it"
    if layers is not None and device in layers.on_device:
        return f": each of its {layers.layers} layers is right by itself, and not all together"
    return ""


def _conformance(figures: CheckFigures, device: str, wrong: Sequence[str]) -> str:
    """Return what `edgeflare conform` says of the layers that a device computes otherwise."""
    for fault in _faults_as_they_stand(figures, device):
        if any(said.startswith(place) for said in wrong for place in fault.layers):
            symptom = in_words(fault.symptom)
            return f"conform finds {fault.operator} {fault.type} with {symptom}{fault.when}"
    return ""


def _faults_as_they_stand(figures: CheckFigures, device: str) -> Iterator[OperatorFault]:
    """Yield what is wrong with the model's own operators by themselves on a device."""
    return (
        fault
        for operator in figures.operators
        if operator.device == device
        for fault in operator.faults
        if fault.places
    )


def other_by_threads(known: KnownToRules) -> Iterator[Cause]:
    """Yield numbers of threads by which devices decide more otherwise than kernels may.

    Items of a batch that depend on each other may be the model's own doing, and are no cause.
    """
    limit = known.limit("kernel-changes")
    for device in known.figures.devices:
        for variant in device.kernels.variants or ():
            if limit is None or variant.kind != "threads" or not variant.inputs:
                continue
            if share(variant.wrong, variant.inputs).low > limit:
                yield Cause(
                    rule="kernels",
                    sentence=f"{device.decisions.device} decides {variant.wrong} of"
                    f" {variant.inputs}"
                    f" inputs otherwise {variant.way} than on as many as its profile says",
                    evidence=outcome(device),
                    next_step="run it with the threads of the profile, and report the kernels",
                )
