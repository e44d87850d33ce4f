"""The verdict on a finding: rules over its evidence, of which the first that applies decides.

An earlier rule makes the later ones meaningless: if a device contradicts itself, no kernel can be
blamed; if the models do not get the same input, quantization cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from edgeflare.diagnose.compression_error import Grade
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import REPEATS, ExecutionMode, Vote
from edgeflare.pages.facts import count_of, in_words
from edgeflare.record.json_types import Share
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels, is_tflite_kernel_set

Name = Literal[
    "compression",
    "kernel",
    "host-suspect",
    "unstable",
    "input-suspect",
    "other-order",
    "input-stage",
    "output-stage",
    "both-stages",
    "several",
    "none",
]
"""`none`: nothing deviates, as on a device where the fault is repaired. The stages are what the
device has of its own before and behind the model."""

STAGE_PLACES: dict[str, str] = {
    "input-stage": "before the model",
    "output-stage": "behind the model",
    "both-stages": "before and behind the model",
}
"""Where the difference begins, for the verdicts that name stages of the device."""

OF_KERNELS: Final[frozenset[Name]] = frozenset({"kernel", "several", "host-suspect", "unstable"})
"""The verdicts whose cause may lie in the layer where device and twin begin to differ. Of the
others, that they differ somewhere, such as by a rounding, has nothing to do with the deviation."""

_OfDevice = Literal[
    "delegate",
    "accelerator-precision",
    "cpu-fallback",
    "thread-count",
    "runtime-version",
    "machine",
    "device",
]

Which: TypeAlias = Kernels | _OfDevice | Grade
"""What causes the difference of device and twin, or what of compression is to blame: a kernel set,
of which XNNPACK goes as the "delegate" that it is; or what else of the device, where "device" is
nothing else that is known; or a `Grade`."""

_IN_WORDS: Final[Mapping[str, str]] = {
    "cpu-fallback": "CPU fallback",
    **{name: kernels.title for name, kernels in KERNEL_SETS.items()},
}


def which_in_words(which: Which) -> str:
    """Return what is to blame as people read it, such as "built-in kernels" for "builtin"."""
    return _IN_WORDS.get(which, in_words(which))


@dataclass(frozen=True, slots=True)
class MarginShares:
    """What compression and kernels have in the way of the margin from original to device.

    Attributes:
        compression: share of the way from original to twin.
        kernel: share of the way from twin to device; the two add up to 1.

    """

    compression: Share
    kernel: Share


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause that the evidence shows.

    Attributes:
        name: the verdict.
        why: the evidence that decided, in one sentence without its full stop; what each arm
            answered is in the run, and is not said again.
        which: what of the kernels, for the verdicts "kernel" and "several"; what of compression,
            for "compression"; null where it is not known, and of other verdicts.
        shares: shares of the way that the margin between the two labels went from original to twin
            to device; null where they cannot be computed.

    """

    name: Name
    why: str
    which: Which | None = None
    shares: MarginShares | None = None

    def __str__(self) -> str:
        return self.name if self.which is None else f"{self.name}: {which_in_words(self.which)}"


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict.

    Raises:
        ValueError: the device was asked too few times for any verdict.

    """
    if len(evidence.device.labels) < REPEATS:
        raise ValueError(f"no verdict without {REPEATS} answers of the device")
    return (
        _unstable(evidence)
        or _other_stages(evidence)
        or _other_order(evidence)
        or _wrong_input(evidence)
        or _failing(evidence)
        or _by_answers(evidence)
    )


def _other_stages(evidence: Evidence) -> Verdict | None:
    """Return a verdict where the device's own stages change its answer.

    Kernels are not to blame for it, even if they would make the device differ with equal stages
    too; `why` then says what is left.
    """
    stages, equal = evidence.stages, evidence.device
    if stages is None or stages.shipped.agrees(equal):
        return None
    by_outputs, by_inputs = stages.pair_outputs.agrees(equal), stages.pair_inputs.agrees(equal)
    name: Name = "both-stages"
    how = "with the pair's input and output stages"
    if by_outputs != by_inputs:
        name = "output-stage" if by_outputs else "input-stage"
        how = (
            "with the pair's output stage on the same raw outputs"
            if by_outputs
            else "with the pair's input stage"
        )
    if name == "input-stage" and (keys := stages.deciding_keys(equal)):
        how += f", of which {' or '.join(keys)} alone decides"
    said, shipped = _in_full(evidence, equal), _in_full(evidence, stages.shipped)
    why = f"the device gives {shipped}, and {said} {how}"
    left = (
        _other_order(evidence)
        or _wrong_input(evidence)
        or _failing(evidence)
        or _by_answers(evidence)
    )
    return Verdict(name, why if left.name == "none" else f"{why}; then what is left is {left}")


def _in_full(evidence: Evidence, vote: Vote) -> str:
    return vote.failure or evidence.described(vote) or evidence.said(vote)


def _unstable(evidence: Evidence) -> Verdict | None:
    device = evidence.shipped
    if len(set(device.labels)) > 1:
        said = _listed(evidence, device.labels)
        return Verdict("unstable", f"the device answered {said} in turn")
    if not device.steady:
        return Verdict("unstable", "the device's outputs differ from one time to the next")
    before = set(evidence.recorded)
    if device.is_of_values:  # a run numbers texts and the like as they first appear in it
        before = {None if label is None else 0 for label in before}
    if before and before != {device.label}:
        now, then = evidence.named(device.label), _listed(evidence, evidence.recorded)
        return Verdict("unstable", f"the device now answers {now}, and {then} in the run")
    return None


def _other_order(evidence: Evidence) -> Verdict | None:
    """Return a verdict where an arm has outputs, classes or values in another order."""
    order = next((found.order for found in evidence.seeds.values() if found.order), None)
    return None if order is None else Verdict("other-order", order)


def _wrong_input(evidence: Evidence) -> Verdict | None:
    in_layer = {
        "original-twin": evidence.compression_in_layer,
        "twin-device": evidence.kernel_in_layer,
    }
    for pair, where in in_layer.items():
        found = evidence.seeds.get(pair)
        if found is None or not (found.large or found.explained):
            continue
        first, second = pair.split("-")
        if found.explained is not None:
            reason = f"they agree when the {second}'s input is {found.explained}"
        elif not where:
            reason = "no layer accounts for it"
        else:
            continue
        return Verdict(
            "input-suspect",
            f"{first} and {second} differ on {found.rate:.0%} of the seeds, and {reason}",
        )
    return None


def _failing(evidence: Evidence) -> Verdict | None:
    device, twin, original = evidence.device, evidence.twin, evidence.original
    if device.failure is None and twin.failure is None:
        return None
    if original is not None and original.failure == device.failure == twin.failure:
        return Verdict("none", f"all arms fail: {device.failure}")
    if device.failure is not None and twin.failure is not None:
        # Ordinary rounding makes no file fail.
        found = evidence.compression_as
        which: Which | None = None if found == "spread" else found
        return Verdict("compression", f"the file fails on the host too: {twin.failure}", which)
    if twin.failure is not None:
        return Verdict("host-suspect", f"the twin fails and the device does not: {twin.failure}")
    which, why = _which(evidence)
    return Verdict("kernel", f"the device fails ({device.failure}); {why}", which)


def _by_answers(evidence: Evidence) -> Verdict:
    twin, device = evidence.twin, evidence.device
    original = evidence.original
    shares = _shares(evidence)
    agree = twin.agrees(device)
    if agree and (original is None or original.agrees(device)):
        same = "no two arms deviate" if device.is_of_values else "all arms give the same label"
        return Verdict("none", same)
    if agree:
        why = _against_the_original(evidence)
        return Verdict("compression", why, evidence.compression_as, shares)
    which, why = _which(evidence)
    if original is not None and not (original.agrees(twin) or original.agrees(device)):
        return Verdict("several", f"{_all_apart(evidence)}; {why}", which, shares)
    if original is not None and not original.agrees(device) and twin.tied:
        return Verdict("several", f"compression brought the twin to a tie; {why}", which, shares)
    if suspicion := _host_suspect(evidence):
        return Verdict("host-suspect", suspicion, shares=shares)
    return Verdict("kernel", why, which, shares)


def _against_the_original(evidence: Evidence) -> str:
    """Say that twin and device agree, and how far from the original, where that is measured."""
    original, twin, device = evidence.original, evidence.twin, evidence.device
    assert original is not None  # noqa: S101 - where there is none, nothing deviates
    far, near = device.measured(original), device.measured(twin)
    if not evidence.answer_noun or far is None or near is None:
        return "twin and device agree"
    return (
        f"the {device.measured_as} between the device's {evidence.answer_noun} and the original's"
        f" is {far:.4g}, and between the device's and the twin's {near:.4g}"
    )


def _all_apart(evidence: Evidence) -> str:
    """Say that no two arms agree, and how far they are apart, where that is measured."""
    original, twin, device = evidence.original, evidence.twin, evidence.device
    assert original is not None  # noqa: S101 - asked only where there is one
    by_compression, by_kernels = twin.measured(original), device.measured(twin)
    if not evidence.answer_noun or by_compression is None or by_kernels is None:
        return "no two arms agree"
    return (
        f"the {twin.measured_as} between the twin's {evidence.answer_noun} and the original's is "
        f"{by_compression:.4g}, and between the device's and the twin's {by_kernels:.4g}"
    )


def _host_suspect(evidence: Evidence) -> str | None:
    """Return why the host may be the faulty one; None where nothing suggests it."""
    shaky = [vote for vote in evidence.host if not vote.steady]
    if shaky:
        return f"{shaky[0].mode} differs from one time to the next"
    device = evidence.device
    everywhere = [device, *evidence.others]
    # Equal outputs of the same kernels; equal labels alone may be chance.
    alike = {(vote.mode.ran, vote.outputs[:1]) for vote in everywhere if vote.agrees(device)}
    siding = [vote for vote in evidence.host if (vote.mode.ran, vote.outputs[:1]) in alike]
    sets = {vote.mode.ran for vote in everywhere if vote.agrees(device)}
    unanimous = len(sets) > 1 and all(vote.agrees(device) for vote in everywhere)
    if siding and unanimous and evidence.twin.mode.ran in sets:
        return (
            f"the device gives one answer under all its kernels, which {siding[0].mode} gives too,"
            f" but not {evidence.twin.mode}"
        )
    return None


def _which(evidence: Evidence) -> tuple[Which, str]:
    """Return what causes the difference of device and twin, and why."""
    device, twin = evidence.device, evidence.twin
    for other in evidence.others:
        threads = other.mode.kernels == device.mode.kernels and (
            other.mode.threads != device.mode.threads
        )
        if threads and not other.agrees(device):
            count = count_of(other.mode.threads, "thread")
            does = "does as the twin" if other.agrees(twin) else "gives another answer"
            return "thread-count", f"the device {does} with {count}"
    # What an accelerator's settings do is shown by experiments that change nothing else.
    if device.mode.accelerated and (found := _by_precision(evidence) or _by_fallback(evidence)):
        return found
    if device.mode.kernels == twin.mode.ran and device.mode.ran != twin.mode.ran:
        which: Which = "delegate" if evidence.same_runtime else "runtime-version"
        return which, "the device's runtime delegated nothing, the host's did"
    ran = _kernels_of_host(device)
    same = [vote for vote in evidence.host if vote.mode.ran == ran]
    if ran != twin.mode.ran and any(vote.agrees(device) for vote in same):
        alone = _standing_alone(evidence)
        why = f"the host does as the device with {ran} kernels"
        return _blamed(alone), f"{why}; {_whose(evidence, alone)}"
    return _by_the_device(evidence)


def _by_precision(evidence: Evidence) -> tuple[Which, str] | None:
    """Blame float16 where the device gives the twin's answer in float32 throughout."""
    own = evidence.device.mode
    exact = _asked(evidence, replace(own, precision="fp32"))
    if own.precision != "fp16" or exact is None or not exact.agrees(evidence.twin):
        return None
    return (
        "accelerator-precision",
        f"the device does as the twin where its {_accelerator(own)} computes in float32 throughout",
    )


def _by_fallback(evidence: Evidence) -> tuple[Which, str] | None:
    """Blame the fallback where the CPU's nodes alone account for the answer.

    So it is where the accelerator gives the twin's answer once nothing may fall back. A model that
    it takes in part cannot be run so; it can be run on the CPU of the same runtime as a whole, and
    if that gives the device's answer, the nodes on the accelerator add nothing to it. But if the
    host's XNNPACK gives it too, those kernels are not wrong, and the accelerator may do as they do.
    Where nothing was accelerated, the CPU has run all.
    """
    device, own = evidence.device, evidence.device.mode
    alone = _asked(evidence, replace(own, fallback=False))
    if own.fallback and alone is not None and alone.agrees(evidence.twin):
        return (
            "cpu-fallback",
            "the device does as the twin where nothing may fall back to the CPU",
        )
    if own.ran == "compiled-cpu":
        return "cpu-fallback", f"its {_accelerator(own)} took no node, so that the CPU ran them all"
    whole = next((vote for vote in evidence.others if vote.mode.ran == "compiled-cpu"), None)
    on_host = any(vote.agrees(device) for vote in evidence.host if vote.mode.ran == "xnnpack")
    if own.fallen_back and whole is not None and whole.agrees(device) and not on_host:
        return (
            "cpu-fallback",
            f"{own.fallen_back} of {own.total} nodes fell back to the CPU, and the device gives the"
            " same answer with all of them there",
        )
    return None


def _asked(evidence: Evidence, mode: ExecutionMode) -> Vote | None:
    """Return the device's vote in a mode, however many nodes it took then."""
    return next((vote for vote in evidence.others if _settings(vote.mode) == _settings(mode)), None)


def _settings(mode: ExecutionMode) -> ExecutionMode:
    return replace(mode, delegated=None, total=None)


def _accelerator(mode: ExecutionMode) -> str:
    return "accelerator" if mode.kernels is None else f"{mode.kernels.upper()} accelerator"


def _by_the_device(evidence: Evidence) -> tuple[Which, str]:
    """Return what the device has that causes it, where no kernels of the host do the same."""
    only_on_device = _only_on_device(evidence)
    ran = evidence.device.mode.ran
    # No host has kernels of another runtime to compare with, whatever runtime and machine it has.
    if only_on_device and (ran is None or is_tflite_kernel_set(ran)):
        return only_on_device
    others = [vote for vote in evidence.others if vote.mode.ran != ran]
    changed = [vote for vote in others if vote.agrees(evidence.twin)]
    if changed:
        why = f"the device does as the twin with {changed[0].mode.ran} kernels"
        return _blamed(ran), f"{why}, so it is its {_named(ran)}"
    return only_on_device or ("device", "the host, with the same runtime, gives it with no kernels")


def _only_on_device(evidence: Evidence) -> tuple[Which, str] | None:
    """Return a property of the device that the host lacks; None where it has all."""
    if not evidence.same_runtime:
        return "runtime-version", "the host has another runtime, and no kernels that do the same"
    if not evidence.same_machine:
        return "machine", "the host is another machine, and has no kernels that do the same"
    return None


def _kernels_of_host(device: Vote) -> Kernels | None:
    """Return the kernels with which a host runs models as the device does.

    A compiled model's CPU kernels are XNNPACK's.
    """
    return "xnnpack" if device.mode.ran == "compiled-cpu" else device.mode.ran


def _standing_alone(evidence: Evidence) -> Kernels | None:
    """Return which of the host's kernel sets the others contradict: the twin's or the device's."""
    twin_kernels, device_kernels = evidence.twin.mode.ran, _kernels_of_host(evidence.device)
    third = [vote for vote in evidence.host if vote.mode.ran not in (twin_kernels, device_kernels)]
    return twin_kernels if any(vote.agrees(evidence.device) for vote in third) else device_kernels


def _whose(evidence: Evidence, alone: Kernels | None) -> str:
    """Say which side has the kernels that the others contradict, and what the other side has."""
    twin_kernels, device_kernels = evidence.twin.mode.ran, _kernels_of_host(evidence.device)
    host, device = f"the host's {_named(twin_kernels)}", f"the device's {_named(device_kernels)}"
    one, other = (host, device) if alone == twin_kernels else (device, host)
    return f"{one} stand{'s' if alone == 'xnnpack' else ''} alone against {other}"


def _blamed(kernels: Kernels | None) -> Which:
    if kernels is None:
        return "device"
    return "delegate" if kernels == "xnnpack" else kernels


def _named(kernels: Kernels | None) -> str:
    return "kernels" if kernels is None else KERNEL_SETS[kernels].title


def _shares(evidence: Evidence) -> MarginShares | None:
    """Return the shares of compression and kernels in the change of the margin.

    The margin is the probability of the original's label less that of the device's. Compression
    changes it from original to twin, the kernels from twin to device. Of texts and the like it is
    the margin to the original's answer, of several heads or frames that are too many to have joint
    probabilities that of their scores. Of values, their distances are the changes.
    """
    votes = [evidence.original, evidence.twin, evidence.device]
    arms = [vote for vote in votes if vote is not None]
    answers = [arm.answer for arm in arms if arm.answer is not None and not arm.answer.failure]
    if len(answers) == len(votes) and not answers[0].chooses:
        if evidence.original is None:
            return None
        by_compression = evidence.twin.measured(evidence.original)
        by_kernels = evidence.device.measured(evidence.twin)
        if by_compression is None or by_kernels is None or not by_compression + by_kernels:
            return None
        compression = by_compression / (by_compression + by_kernels)
        return MarginShares(compression, 1.0 - compression)
    margins = (
        _margins_of_labels(arms)
        if not answers or (answers[0].counted and len(answers[0].scores))
        else [answer.margin(answers[0]) for answer in answers]
    )
    return _shares_of_margins(margins) if len(margins) == len(votes) else None


def _margins_of_labels(arms: Sequence[Vote]) -> list[float]:
    """Return the probability of the first arm's label less that of the last, of each arm."""
    first, last = arms[0].label, arms[-1].label
    if first is None or last is None:
        return []
    return [arm.probabilities[first] - arm.probabilities[last] for arm in arms if arm.probabilities]


def _shares_of_margins(margins: Sequence[float]) -> MarginShares | None:
    original, twin, device = margins
    moved = abs(original - twin) + abs(twin - device)
    if not moved:
        return None
    # Changes in opposite directions cancel, so the shares are those of their sizes.
    compression = abs(original - twin) / moved
    return MarginShares(compression, 1.0 - compression)


def _listed(evidence: Evidence, labels: tuple[int | None, ...]) -> str:
    return ", ".join(map(evidence.named, labels))
