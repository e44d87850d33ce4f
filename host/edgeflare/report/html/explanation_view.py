"""What `edgeflare explain` found out about a finding, as a card shows it.

It is read from `explain.json`, if that lies beside the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from edgeflare.diagnose.explain_document import (
    ExplainedFinding,
    ExplainedVote,
    load_explanations,
)
from edgeflare.diagnose.layer_difference import Difference, LayerName
from edgeflare.diagnose.verdict import OF_KERNELS, STAGE_PLACES, Verdict, which_in_words
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import count_of, in_words
from edgeflare.pages.page import row_groups
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument


@dataclass(frozen=True, slots=True)
class LayerView:
    """How far arms are apart after one operator of the network.

    Attributes:
        name: the operator's position and name, "3 CONV_2D".
        kernel: largest difference of device and twin there; None where it is not known.
        compression: largest difference of twin and original that is new there, in quantization
            units; None likewise.
        begins: whether this is where the deviation starts.
        real: largest difference of device and twin in real values where that is not none and the
            layer is not quantized, though the network is; `kernel` is None there.

    """

    name: str
    kernel: float | None = None
    compression: float | None = None
    begins: bool = False
    real: float | None = None


@dataclass(frozen=True, slots=True)
class ExplanationView:
    """Why a finding deviates, and where that starts.

    Attributes:
        verdict: the verdict in a few words, such as "kernel (delegate)".
        why: the evidence that decided, in a sentence; or empty.
        next_step: what to do about it, without a full stop; or empty.
        onset: where it starts, in words, or None where that is not known.
        votes: what was run, and what it decided.
        layers: divergence along the network, in its order; empty where it was not looked for.
        unit: what `LayerView.kernel` is in.
        device: the device that was asked, which need not be the run's; empty where not known.

    """

    verdict: str
    why: str = ""
    next_step: str = ""
    onset: str | None = None
    votes: tuple[tuple[str, str], ...] = ()
    layers: tuple[LayerView, ...] = ()
    unit: str = "quantization units"
    device: str = ""


def load_explanation_views(
    directory: RunDirectory, document: RunDocument
) -> dict[int, ExplanationView]:
    """Return what is known of a run's findings, by seed id.

    What was found out about another pair, or about an input that has since been replaced, is left
    out.

    Raises:
        UserError: the file is damaged.

    """
    explanations = load_explanations(directory, document.pair.fingerprint)
    if explanations is None:
        return {}
    known = {(entry.seed_id, entry.sha256) for entry in document.deviations}
    return {
        finding.seed_id: explanation_view(finding, document.classes)
        for finding in explanations.findings.values()
        if (finding.seed_id, finding.sha256) in known
    }


_NOWHERE: Final = "It begins in no single layer"


def grouped_verdicts(explanations: Iterable[ExplanationView]) -> list[tuple[int, str]]:
    """Return what several findings have in common: how many they are, and their verdict and place.

    Those that name a place come first, then the most frequent. Of findings without a single layer
    the shares of the layers are left out, in which any two differ.
    """
    groups = sorted(
        row_groups(explanations, lambda view: (view.verdict, _place(view))),
        key=lambda ones: (_place(ones[0]) in (None, _NOWHERE), -len(ones)),
    )
    return [
        (len(ones), ". ".join(filter(None, (ones[0].verdict, _place(ones[0]))))) for ones in groups
    ]


def _place(view: ExplanationView) -> str | None:
    return _NOWHERE if (view.onset or "").startswith(_NOWHERE) else view.onset


def explanation_view(finding: ExplainedFinding, classes: Sequence[str]) -> ExplanationView:
    """Return what a card shows of an explanation."""
    evidence, stages = finding.evidence, finding.evidence.stages
    named = [(_voter(vote), vote) for vote in evidence.votes]
    if stages is not None:
        named += stages.named()
    layers, unit = _layers(finding)
    return ExplanationView(
        verdict=verdict_words(finding.verdict),
        why=finding.verdict.why,
        next_step=finding.next_step,
        onset=_onset(finding),
        votes=tuple((name, _vote(vote, classes)) for name, vote in named),
        layers=layers,
        unit=unit,
        device=finding.device,
    )


def verdict_words(verdict: Verdict) -> str:
    """Return a verdict in a few words, "kernel (delegate)" for one."""
    name, shares = in_words(verdict.name), verdict.shares
    if verdict.name == "several" and shares is not None:
        name = f"{name}: {shares.compression:.0%} compression, {shares.kernel:.0%} kernel"
    return f"{name} ({which_in_words(verdict.which)})" if verdict.which else name


def largest(difference: Difference | None, *, in_units: bool) -> float | None:
    """Return the largest difference of a tensor, in quantization units or in real values.

    None is where it is not known, or has no units; nothing is nothing in both.
    """
    if difference is None:
        return None
    real = difference.max_error
    return difference.max_error_steps if in_units and real else real


def _onset(finding: ExplainedFinding) -> str | None:
    """Say where it begins: by the verdict where device and twin part, or twin and original do."""
    if place := STAGE_PLACES.get(finding.verdict.name):
        return f"It begins {place}"
    parting, loss = finding.device_and_twin, finding.twin_and_original
    compression = finding.verdict.name == "compression"
    kernels = finding.verdict.name in OF_KERNELS
    said = []
    if parting.onset is not None and kernels:
        where = f"device and twin part at {_named(parting.onset)}"
        said.append(where if parting.first else f"{where}, or earlier")
    if loss.most is not None and (compression or kernels):
        where = f"twin and original {'' if said else 'part '}at {_named(loss.most)}"
        said.append(f"{where} by more than quantization explains")
    elif compression and loss.coarse:
        said.append(loss.said)
    elif compression and loss.layers and loss.grade is not None:
        said.append(f"{_NOWHERE[0].lower()}{_NOWHERE[1:]}: {loss.said}")
    said += filter(None, [loss.note if compression else parting.note])
    text = "; ".join(said)
    return text[:1].upper() + text[1:] or None


def _layers(finding: ExplainedFinding) -> tuple[tuple[LayerView, ...], str]:
    """Join what is known of each operator; in units where any has some, else in real values.

    A layer that is not quantized in a network that is has its difference apart, since it cannot be
    held against the others.
    """
    begins = finding.begins_in
    totals = {
        layer.operator_index: (layer, layer.total)
        for layer in finding.device_and_twin.layers
        if layer.total is not None
    }
    losses = {layer.operator_index: layer for layer in finding.twin_and_original.layers}
    quantized = any(total.max_error_steps is not None for _, total in totals.values())
    in_units = quantized or not totals
    layers = []
    for operator in sorted(totals.keys() | losses.keys()):
        parted, total = totals.get(operator, (None, None))
        loss = losses.get(operator)
        known = largest(total, in_units=in_units)
        layers.append(
            LayerView(
                _named(parted or losses[operator]),
                known,
                None if loss is None else loss.residual,
                begins is not None and operator == begins.operator_index,
                total.max_error if total is not None and known is None else None,
            )
        )
    return tuple(layers), "quantization units" if in_units else "real values"


def _named(layer: LayerName) -> str:
    return f"{layer.operator_index} {layer.name}"


def _voter(vote: ExplainedVote) -> str:
    """Name what was asked: "device, builtin, 1 thread", or "device, gpu, fp16"."""
    how = count_of(vote.threads, "thread")
    if vote.precision:
        taken, total = vote.delegated_nodes, vote.total_nodes
        how = vote.precision
        if vote.fallback and taken is not None and isinstance(total, int):
            how += f", fallback of {total - taken} of {count_of(total, 'node')}"
    return ", ".join(part for part in (vote.arm.value, vote.kernels, how) if part)


def _vote(vote: ExplainedVote, classes: Sequence[str]) -> str:
    if vote.described is not None:
        return f"{vote.described} ({count_of(len(vote.labels), 'time')})"
    labels = [
        vote.failure or "nothing" if label is None else class_name(classes, label)
        for label in dict.fromkeys(vote.labels)
    ]
    tie = ", a tie" if vote.tied else ""
    return f"{', then '.join(labels)}{tie} ({count_of(len(vote.labels), 'time')})"
