"""The explanation of a finding: why it deviates, where that begins, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from msgspec import UNSET

from edgeflare.core.query import Arm
from edgeflare.diagnose.compression_error import (
    NO_COUNTERPART,
    ONLY_TFLITE,
    CompressionError,
    LayerCompressionError,
)
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import Vote
from edgeflare.diagnose.explain_document import (
    CompressionLoss,
    ExplainedEvidence,
    ExplainedFinding,
    ExplainedStages,
    ExplainedVote,
    LayerLoss,
)
from edgeflare.diagnose.layer_difference import LARGEST, Difference, KernelOnset
from edgeflare.diagnose.verdict import Verdict
from edgeflare.models.model_probe import Values
from edgeflare.models.non_finite_values import NonFiniteOnset
from edgeflare.run.run_document import Finding


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a finding deviates, and where it begins.

    Attributes:
        finding: the finding.
        device: name of the device that was asked.
        verdict: what is to blame.
        evidence: what the verdict is derived from.
        kernel_onset: where device and twin begin to differ.
        compression_error: the error that compression caused in each layer.
        non_finite: where values that are not finite begin, by arm that was seen; None where all are
            finite.
        device_queries: number of inputs that were sent to the device.
        repairable: whether `edgeflare repair` takes the run.
        issue: what the world knows of the operator in which device and twin begin to differ, in a
            sentence; empty where nothing is known.
        given: the finding's input as the compressed model takes it; None where its layers cannot be
            seen.

    """

    finding: Finding
    device: str
    verdict: Verdict
    evidence: Evidence
    kernel_onset: KernelOnset
    compression_error: CompressionError
    non_finite: Mapping[Arm, NonFiniteOnset | None]
    device_queries: int
    repairable: bool = False
    issue: str = ""
    given: Values | None = None

    @property
    def next_step(self) -> str:
        """What to do next, without a full stop; empty where nothing is known to help."""
        verdict, error = self.verdict, self.compression_error
        if verdict.name != "compression":
            step = _STEPS.get(verdict.which or "", _STEPS[verdict.name])
            if verdict.name == "kernel" and (layer := self.kernel_onset.right_alone) is not None:
                step = _WRONG_TOGETHER.format(layer=layer)
                if self.kernel_onset.together is not None:
                    step = _NAMED_TOGETHER.format(operators=self.kernel_onset.together)
            return f"{step}; {self.issue}" if self.issue else step
        if verdict.which is None:
            if error.original is not None:
                return "mend the original, which has NaN or infinity itself"
            return _OF_UNSEEN.get(error.note, "")
        if verdict.which == "faulty" and error.changed_throughout:
            return _OTHER_MODEL
        without, with_repair = _OF_COMPRESSION[verdict.which]
        return with_repair if self.repairable else without


_WRONG_TOGETHER: Final = (
    "{layer} is right alone, and wrong together with others: `edgeflare conform --from MODEL"
    " --graphs` cuts the model to these"
)

_NAMED_TOGETHER: Final = (
    "{operators} are right alone, and wrong together: `edgeflare conform --from MODEL --graphs`"
    " makes the least model that shows it"
)

_STEPS: dict[str, str] = {
    "kernel": "`edgeflare conform` tells which operators of the device are wrong, and"
    " `edgeflare export RUN SEED` makes a script that shows it",
    "thread-count": "run with the number of threads that decides as the twin does, and report the"
    " other with `edgeflare export RUN SEED`",
    "accelerator-precision": "let the accelerator compute in float32, or measure by"
    " `edgeflare survey` what its precision costs",
    "cpu-fallback": "replace the operators that the accelerator does not take, so that none falls"
    " back to the CPU",
    "runtime-version": "update the device's runtime, or give the host that of the device",
    "several": "`edgeflare search --find kernel` looks for deviations of the kernels alone",
    "host-suspect": "search again with other kernels for the twin, such as `--ensemble builtin`",
    "unstable": "`edgeflare devices check NAME`, then try one thread, or without its accelerator",
    "input-suspect": "hold `[preprocess]` of pair.toml against how each model was trained:"
    " channels, scale and mean",
    "other-order": "convert the file with the original's order, or name outputs and classes in"
    " that of each arm",
    "input-stage": "make the app prepare inputs as `[preprocess]` says",
    "output-stage": "make the app read outputs as the pair does",
    "both-stages": "make the app prepare inputs and read outputs as the pair does",
    "none": "`edgeflare replay RUN` tells which findings are mended",
}
"""Next steps by what is to blame, or by the verdict where nothing is said of that."""

_OTHER_MODEL = "give the original that the file was made from"

_OF_COMPRESSION: dict[str, tuple[str, str]] = {
    "faulty": (
        "convert that layer anew",
        "convert that layer anew, or let `edgeflare repair RUN` restore it",
    ),
    "coarse": (
        "do so, and convert the model anew",
        "do so, or let `edgeflare repair RUN` fit ranges and weights anew",
    ),
    "spread": (
        "train with quantization, or keep more bits",
        "`edgeflare repair RUN` looks for changes that surely help; else train with quantization,"
        " or keep more bits",
    ),
}
"""Next steps by the fault of compression: where `edgeflare repair` refuses the run, and else."""

_OF_UNSEEN: dict[str, str] = {
    ONLY_TFLITE: "compare with a .tflite original, whose layers can be seen",
    NO_COUNTERPART: f"{_OTHER_MODEL}, if this is another",
}
"""Next steps by the note that says why layers were not seen. Other notes have no cure."""


def explained_finding(explanation: Explanation) -> ExplainedFinding:
    """Return an explanation as `explain.json` has it."""
    finding, onset = explanation.finding, explanation.kernel_onset
    layers = (
        replace(layer, total=_written(layer.total), own=_written(layer.own))
        for layer in onset.layers
    )
    return ExplainedFinding(
        seed_id=finding.seed_id,
        file=finding.file,
        sha256=finding.sha256,
        cause=finding.cause,
        device=explanation.device,
        verdict=explanation.verdict,
        next_step=explanation.next_step,
        evidence=explained_evidence(explanation.evidence),
        device_and_twin=replace(
            onset, layers=tuple(layers), perturbation=_written(onset.perturbation)
        ),
        twin_and_original=compression_loss(explanation.compression_error),
        non_finite={arm.value: found for arm, found in explanation.non_finite.items()},
        device_queries=explanation.device_queries,
    )


def explained_evidence(evidence: Evidence) -> ExplainedEvidence:
    """Return the evidence on a finding as `explain.json` has it."""

    def vote(of: Vote) -> ExplainedVote:
        return _vote(of, evidence.described(of))

    stages = evidence.stages
    return ExplainedEvidence(
        votes=tuple(map(vote, evidence.votes)),
        recorded=evidence.recorded,
        stages=None
        if stages is None
        else ExplainedStages(
            vote(stages.shipped),
            vote(stages.pair_outputs),
            vote(stages.pair_inputs),
            {key: vote(of) for key, of in stages.pair_keys.items()},
        ),
        same_runtime=evidence.same_runtime,
        same_machine=evidence.same_machine,
        seeds=evidence.seeds,
    )


def _vote(vote: Vote, described: str | None) -> ExplainedVote:
    mode = vote.mode
    return ExplainedVote(
        arm=mode.arm,
        kernels=mode.kernels,
        threads=mode.threads,
        delegated_nodes=mode.delegated,
        total_nodes=mode.total if mode.accelerated else UNSET,
        precision=mode.precision if mode.accelerated else UNSET,
        fallback=mode.fallback if mode.accelerated else UNSET,
        labels=vote.labels,
        outputs_crc32=tuple(f"{checksum:08x}" for checksum in vote.outputs),
        tied=vote.tied,
        failure=vote.failure,
        probabilities=tuple(round(p, 9) for p in vote.probabilities),
        described=described or None,
    )


def compression_loss(error: CompressionError) -> CompressionLoss:
    """Return what compression did as `explain.json` has it, which has no infinity."""
    return CompressionLoss(
        first=error.first,
        most=error.most,
        margin=error.margin,
        note=error.note,
        unmatched=error.unmatched,
        coarse=error.coarse,
        spread=error.spread,
        grade=error.grade,
        said=error.said,
        input_cut_off=error.input_cut_off,
        layers=tuple(map(_layer_loss, error.layers)),
    )


def _layer_loss(error: LayerCompressionError) -> LayerLoss:
    layer, constants = error.layer, error.constants
    return LayerLoss(
        layer.operator_index,
        layer.name,
        layer.tensor,
        matched_by=error.matched_by,
        total=_written(error.total),
        residual=_finite(error.residual),
        explained=_finite(error.explained),
        constants=None if constants is None else _finite(constants.steps),
        constants_explained=None if constants is None else _finite(constants.explained),
        constants_overflow=error.overflows,
        options=error.options,
        beyond=error.beyond,
        margin_share=None if error.margin_share is None else _finite(error.margin_share),
        cut_off=error.cut_off,
    )


def _written(found: Difference | None) -> Difference | None:
    """Return a difference with as many digits as are written."""
    if found is None or found.snr_db is None:
        return found
    return replace(found, snr_db=round(found.snr_db, 3))


def _finite(value: float) -> float:
    return float(np.clip(value, -LARGEST, LARGEST)) if np.isfinite(value) else LARGEST
