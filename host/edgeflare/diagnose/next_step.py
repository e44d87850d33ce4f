"""What to do next about a finding, by its verdict and by what is known of compression."""

from __future__ import annotations

from edgeflare.diagnose.compression_error import NO_COUNTERPART, ONLY_TFLITE, CompressionError
from edgeflare.diagnose.verdict import Verdict

_STEPS: dict[str, str] = {
    "kernel": "`edgeflare conform` tells which operators of the device are wrong, and"
    " `edgeflare export RUN SEED` makes a script that shows it",
    "thread count": "run with the number of threads that decides as the twin does, and report the"
    " other with `edgeflare export RUN SEED`",
    "accelerator precision": "let the accelerator compute in float32, or measure by"
    " `edgeflare survey` what its precision costs",
    "CPU fallback": "replace the operators that the accelerator does not take, so that none falls"
    " back to the CPU",
    "runtime version": "update the device's runtime, or give the host that of the device",
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
"""By what is to blame, or by the verdict where nothing is said of that."""

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
"""By what of compression is to blame: where `edgeflare repair` refuses the run, and else."""

_OF_UNSEEN: dict[str, str] = {
    ONLY_TFLITE: "compare with a .tflite original, whose layers can be seen",
    NO_COUNTERPART: f"{_OTHER_MODEL}, if this is another",
}
"""By the note that says why layers were not seen. Other notes have no cure."""


def next_step(verdict: Verdict, error: CompressionError, *, repairable: bool) -> str:
    """Return what to do next, without a full stop; empty where nothing is known to help.

    Args:
        verdict: the verdict on a finding.
        error: what compression did on its input.
        repairable: whether `edgeflare repair` takes the run.

    """
    if verdict.name != "compression":
        return _STEPS.get(verdict.which or "", _STEPS[verdict.name])
    if verdict.which is None:
        if error.original is not None:
            return "mend the original, which has NaN or infinity itself"
        return _OF_UNSEEN.get(error.note, "")
    if verdict.which == "faulty" and error.changed_throughout:
        return _OTHER_MODEL
    without, with_repair = _OF_COMPRESSION[verdict.which]
    return with_repair if repairable else without
