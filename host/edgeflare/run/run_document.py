"""The canonical result of a run: `run.json`, schema `edgeflare.run/v1`, as types.

`run.schema.json` beside this file is written from them; docs/run/ says what each figure means.
A key that is absent where it does not apply is None here; UNSET, which is false, where None says
something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from edgeflare.core.goal import Cause, Find
from edgeflare.devices.provenance import Provenance
from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import RunPair
from edgeflare.pages.answers.answer_forms import RecordedAnswer
from edgeflare.record.json_types import (
    Amount,
    Count,
    CountFromOne,
    Number,
    Sha256,
    ShareAsWritten,
    read_text,
    written_text,
)
from edgeflare.run.journal_notes import NeuronCoverage, WithoutReset
from edgeflare.run.plan import Plan
from edgeflare.run.systematic.figures import SystematicDifferences

if TYPE_CHECKING:
    from edgeflare.devices.device import Device

SCHEMA = "edgeflare.run/v1"

_MOST_SEEDS = 10_000_000

StoppedBy = Literal[
    "interrupt",
    "sigterm",
    "time-limit",
    "infrastructure",
    "error",
    "killed",
    "screening",
    "merge",
]
"""What stopped a run before its end, where "interrupt" is Ctrl-C."""

Harm = Literal["original-right", "twin-right", "both-wrong", "both-right", "device-right"]
"""Names for which of the compared arms is right."""

_ArmName = Annotated[str, msgspec.Meta(pattern=r"^(original|twin|device)(?!\n)$")]

_HarmName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^((original|twin|device|both)-right|both-wrong|no-answer|unlabelled)(?!\n)$"
    ),
]

_CanaryName = Annotated[str, msgspec.Meta(pattern=r"^(same|varied|changed)(?!\n)$")]

_SeedId = Annotated[int, msgspec.Meta(ge=0, le=_MOST_SEEDS)]

_Kind = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+(-[a-z]+)*(?!\n)$")]


class RunDocument(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="schema", tag=SCHEMA
):
    """A run: what it found on a pair and its devices, and what that took.

    Attributes:
        edgeflare: version that began the run.
        stopped_by: what stopped the run before its end, where interrupt is Ctrl-C; null if it came
            to its end.
        pair: the pair.
        devices: the devices; of several, the seed with id i belongs to number i modulo their count.
        host: what ran the original and the twin.
        ensemble: kernel sets of the host: the twin's own first, then further members of its
            ensemble.
        strategy: name of the search strategy.
        find: kind of deviations that it looked for.
        rng_seed: the run seed.
        plan: all that was asked.
        classes: names of the classes; empty where not given.
        warnings: what is amiss, a line each.
        health: what was seen of each device while the run lasted.
        unmutated: deviation rates of the seeds, and of the inputs of --test; absent from replays.
        totals: the figures of the whole run.
        nearness: share of all seeds that have a deviating input within a distance.
        deviating_seeds: seeds that deviate themselves, as the other lists in the order in which
            they were found.
        findings: verified findings.
        flaky: findings that did not reproduce.
        unverified: found, but the run was stopped before they could be verified.
        replay: only where the run replays what another found: findings are those that deviate
            still.
        coverage: neuron coverage; absent where --coverage did not ask for it or the run was stopped
            before.

    """

    edgeflare: str
    stopped_by: StoppedBy | None
    pair: RunPair
    devices: Annotated[tuple[RunDevice, ...], msgspec.Meta(min_length=1)]
    host: RunHost
    ensemble: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    strategy: str
    find: Find
    rng_seed: int
    plan: Plan
    classes: tuple[str, ...]
    warnings: tuple[str, ...]
    health: tuple[ObservedHealth, ...]
    unmutated: Unmutated | None = None
    totals: Totals
    nearness: Nearness
    deviating_seeds: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    flaky: tuple[Finding, ...]
    unverified: tuple[Finding, ...]
    replay: ReplayOutcome | None = None
    coverage: NeuronCoverage | None = None

    @property
    def deviations(self) -> tuple[Finding, ...]:
        """The seeds that deviate themselves, then the verified findings."""
        return (*self.deviating_seeds, *self.findings)

    @property
    def lists(self) -> dict[str, tuple[Finding, ...]]:
        """All findings by the key of their list; `mended` is empty but of a replay."""
        return {
            "deviating_seeds": self.deviating_seeds,
            "findings": self.findings,
            "flaky": self.flaky,
            "unverified": self.unverified,
            "mended": () if self.replay is None else self.replay.mended,
        }


class RunDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a run.

    Attributes:
        name: what the run calls it.
        provenance: what it is, as its agent told and as its profile asked.

    """

    name: str
    provenance: Provenance

    @classmethod
    def of(cls, device: Device) -> RunDevice:
        """Return what a run says of a connected device."""
        return cls(name=device.profile.name, provenance=device.provenance)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A stored input: a finding, verified or not, or a seed that deviates itself.

    Attributes:
        seed_id: position of the seed input in its set, from 0.
        seed_name: the name of the seed's file; its position where the seeds lie in one file.
        seed_label: the seed's own label, where given.
        seed_target: what the seed's target says is right, as people read it; absent where none is
            known.
        kind: what makes it a finding: crash, hang, invalid-output, or deviation; where the task
            tells kinds of deviations apart, the kind.
        device: name of the device that answered.
        queries: queries of its chain; 0 for a seed that deviates itself.
        device_queries: those of them that the device answered.
        host_gradients: gradients of original and twin that its chain asked for; absent where it
            asked for none.
        translated_evaluations: inputs on which its chain evaluated the translations of original and
            twin; absent likewise.
        seconds: the chain's share of evaluation time.
        labels: decision by arm, of a classifier the top-1 label; null where the arm failed. Joint
            decisions that are too many to be counted are numbered as they first appear; of values
            it is always 0.
        tied: whether the decision hangs on a tie of raw outputs, by arm.
        by_tie: whether that the compared arms differ hangs on a tie.
        probabilities: probability of each class, by arm; empty where answers says it.
        answers: how the answers are shown, one for each head, or frame that is compared by itself;
            absent where labels and probabilities say it all, as of a classifier with one head.
        seed_answers: the same of the seed; absent where a task does not show it, and where the arms
            were not asked about it.
        cause: cause from labels alone; null before verification.
        device_sides_with_original: whether the device decides as the original, for kernel-caused
            deviations with an original.
        strength: min(p_1[a] - p_1[b], p_2[b] - p_2[a]) of a classifier's compared arms and their
            labels a, b; for other tasks see docs/tasks.md.
        harm: name for which of the compared arms is right by the seed's label or target; null where
            that is not known.
        distortion: how far the input is from its seed.
        refined: what strengthening and shrinking cost, and what the finding was before; null where
            it was not refined.
        operators: mutation operators applied, in order.
        file: path of the stored input, relative to the run directory.
        sha256: digest of that file.
        seed_file: path of the seed input, relative to the run directory.
        verified: whether it showed three times when evaluated again from its stored file.
        seen: labels in each repetition.
        nearness_db: nearness of the input to its seed in dB, by the measure that nearness.measure
            names; null for a seed that deviates itself, and where it is not known.
        within: whether it is as near as --within asks; null where nothing was asked.
        strong: whether it is as strong as --min-strength asks; null where nothing was asked.

    """

    seed_id: _SeedId
    seed_name: str
    seed_label: int | None
    seed_target: str | UnsetType = UNSET
    kind: _Kind
    device: str
    queries: Count
    device_queries: Count
    host_gradients: Count | UnsetType = UNSET
    translated_evaluations: Count | UnsetType = UNSET
    seconds: Amount
    labels: Mapping[_ArmName, Count | None]
    tied: Mapping[str, bool]
    by_tie: bool
    probabilities: Mapping[str, tuple[Number, ...]]
    answers: tuple[RecordedAnswer, ...] | UnsetType = UNSET
    seed_answers: tuple[RecordedAnswer, ...] | UnsetType = UNSET
    cause: Cause | None
    device_sides_with_original: bool | None
    strength: Number | None
    harm: Harm | None
    distortion: Distortion
    refined: Refined | None
    operators: tuple[str, ...]
    file: str
    sha256: Sha256
    seed_file: str
    verified: bool
    seen: tuple[Mapping[_ArmName, int | None], ...]
    nearness_db: Number | None
    within: bool | None
    strong: bool | None


class Distortion(msgspec.Struct, frozen=True):
    """The distance of an input to its seed.

    Attributes:
        l2: Euclidean distance in levels, of images gray levels.
        linf: the largest change of a value, in levels.
        mean_abs: mean of the changes' magnitudes, in levels.
        changed: number of cells, of images pixels, that differ.

    """

    l2: Amount
    linf: Amount
    mean_abs: Amount
    changed: Count


class Refined(msgspec.Struct, frozen=True, kw_only=True):
    """What strengthening and shrinking cost, and what the finding was before.

    Attributes:
        queries: queries that both took.
        device_queries: those of them that the device answered.
        host_gradients: gradients of the original that shrinking asked for, which are no queries;
            absent where it asked for none.
        translated_evaluations: inputs on which it evaluated the translations of original and twin;
            absent likewise.
        strength_before: the strength before; null where it had none.
        distortion_before: the distance to the seed before.
        file_before: path of the input before, relative to the run directory.

    """

    queries: Count
    device_queries: Count
    host_gradients: Count | UnsetType = UNSET
    translated_evaluations: Count | UnsetType = UNSET
    strength_before: Number | None
    distortion_before: Distortion
    file_before: str


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a whole run. Means and medians are null where nothing was found.

    Attributes:
        seeds: seeds of the campaign.
        deviating_seeds: seeds that deviate themselves; not searched.
        searched: chains that have ended.
        findings: verified findings.
        success_rate: findings / (seeds - deviating_seeds).
        mean_queries: mean over the chains that ended in a verified finding.
        median_queries: median over the same chains.
        queries: distinct mutated inputs evaluated on at least one arm.
        mean_device_queries: mean over the chains that ended in a verified finding.
        device_queries: inputs sent to the device in the search.
        overhead_queries: inputs evaluated outside the search: seeds, refinement and verification.
        overhead_device_queries: those of them that the device answered.
        host_evaluations: host invocations, by arm and kernel set.
        host_gradients: gradients of original and twin that the searches which have ended asked for;
            absent where the strategy asks for none.
        translated_evaluations: inputs on which these searches evaluated the translations of
            original and twin; absent likewise.
        setup_seconds: opening the models and evaluating the seeds.
        wall_seconds: the search alone, from its first query to its last answer; refining and
            verification are apart.
        refine_seconds: strengthening and shrinking.
        refined: findings whose refinement has ended; absent, as the next two, where none was
            refined.
        refine_queries: queries of all refinements: one for each finding to see whether it still is
            one, strengthening, shrinking, and those that have not ended.
        refine_device_queries: those that the device answered, after the host or beside it.
        refine_host_gradients: gradients that the refinements which have ended asked for; absent
            where they asked for none.
        refine_translated_evaluations: inputs on which these refinements evaluated the translations
            of original and twin; absent likewise.
        strengthen_queries: strengthening of findings whose refinement has ended; absent where it
            was not asked for, or none was refined.
        strengthen_device_queries: those that the device answered; absent likewise.
        strengthen_seconds: part of refine_seconds that strengthening took, by the time of
            evaluations; absent likewise.
        shrink_queries: shrinking of findings whose refinement has ended; absent where it was not
            asked for, or none was refined.
        shrink_device_queries: those that the device answered; absent likewise.
        shrink_seconds: part of refine_seconds that shrinking took, by the time of evaluations;
            absent likewise.
        verify_seconds: verification of what was found.
        mean_seconds: mean evaluation time of the chains that ended in a verified finding.
        device_busy_seconds: time that the device computed during the search.
        ties: deviations by a tie that the search met.
        flaky: findings that did not reproduce.
        harm: who was right; absent where the seeds have no labels.
        duplicates: how much of what was found is the same input.

    """

    seeds: _SeedId
    deviating_seeds: Count
    searched: Count
    findings: Count
    success_rate: ShareAsWritten
    mean_queries: Amount | None
    median_queries: Amount | None
    queries: Count
    mean_device_queries: Amount | None
    device_queries: Count
    overhead_queries: Count
    overhead_device_queries: Count
    host_evaluations: Mapping[str, Count]
    host_gradients: Count | None = None
    translated_evaluations: Count | None = None
    setup_seconds: Amount
    wall_seconds: Amount
    refine_seconds: Amount
    refined: Count | None = None
    refine_queries: Count | None = None
    refine_device_queries: Count | None = None
    refine_host_gradients: Count | None = None
    refine_translated_evaluations: Count | None = None
    strengthen_queries: Count | None = None
    strengthen_device_queries: Count | None = None
    strengthen_seconds: Amount | None = None
    shrink_queries: Count | None = None
    shrink_device_queries: Count | None = None
    shrink_seconds: Amount | None = None
    verify_seconds: Amount
    mean_seconds: Amount | None
    device_busy_seconds: Amount
    ties: Count
    flaky: Count
    harm: HarmTotals | None = None
    duplicates: Duplicates


class HarmTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are of each harm; those that are none are absent.

    Attributes:
        deviating_seeds: counts for the seeds that deviate themselves; null without labels.
        findings: counts for the verified findings; null without labels.

    """

    deviating_seeds: Mapping[_HarmName, Count] | None
    findings: Mapping[_HarmName, Count] | None


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was found is the same input.

    Attributes:
        triggers: findings whose input was compared.
        distinct: different inputs among them.
        exact: those that another one equals in every value.
        near: those that another one is near to, of images by a perceptual hash, or equals.
        distinct_seeds: different inputs among their seeds.

    """

    triggers: Count
    distinct: Count
    exact: Count
    near: Count
    distinct_seeds: Count


class Nearness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The share of all seeds that have a deviating input within a distance.

    Attributes:
        measure: the measure of distances in dB, such as SNR; absent where it is PSNR.
        range_db: two ends, in dB, between which the area under the curve lies; absent where they
            are 10 and 60.
        db: shares by the measure in dB.
        linf: shares by the largest change of a value.
        area: area under the curve of the share against PSNR from 10 to 60 dB, or the measure and
            range above, divided by its width.

    """

    measure: str | None = None
    range_db: Annotated[tuple[Number, ...], msgspec.Meta(min_length=2, max_length=2)] | None = None
    db: tuple[DbShare, ...]
    linf: tuple[LinfShare, ...]
    area: ShareAsWritten


class DbShare(msgspec.Struct, frozen=True):
    """How many seeds have a deviating input of at least a nearness.

    Attributes:
        at_least_db: least nearness by the measure, in dB.
        seeds: how many seeds.
        share: their share of all.

    """

    at_least_db: Number
    seeds: Count
    share: ShareAsWritten


class LinfShare(msgspec.Struct, frozen=True):
    """How many seeds have one whose largest change is at most so many levels.

    Attributes:
        at_most_levels: levels; of images, gray levels.
        seeds: how many seeds.
        share: their share of all.

    """

    at_most_levels: Number
    seeds: Count
    share: ShareAsWritten


class Unmutated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often the compared arms deviate on inputs as they are.

    Attributes:
        seeds: on the seeds.
        test: on the inputs of --test; absent where none are given.
        systematic: what differs in the same way on many seeds; absent where nothing is significant.
        without_reset: what the twin answers where its variables are not reset between the first
            seeds, in their order, as in an app that forgets it; absent where the compressed model
            has none.

    """

    seeds: DeviationRate
    test: DeviationRate | None = None
    systematic: SystematicDifferences | None = None
    without_reset: WithoutReset | None = None


class DeviationRate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often the arms deviate, with the exact 95 % interval (Clopper and Pearson).

    Attributes:
        path: path of the inputs of --test; absent of the seeds.
        inputs: inputs that were evaluated.
        deviating: those on which the compared arms decide differently, or one fails.
        by_tie: deviating inputs that deviate by a tie.
        tied: inputs on which the decision of a compared arm hangs on a tie.
        rate: share of those that deviate.
        low: lower end of its interval.
        high: upper end of its interval.
        harm: who was right on those that deviate, how many of each; null without labels.
        harm_by_tie: the same of those that deviate by a tie.
        labelled: inputs whose label is known.
        right: number of labelled inputs that each arm decides as the label says; null where none is
            labelled.

    """

    path: str | None = None
    inputs: Count
    deviating: Count
    by_tie: Count
    tied: Count
    rate: ShareAsWritten
    low: ShareAsWritten
    high: ShareAsWritten
    harm: Mapping[_HarmName, Count] | None
    harm_by_tie: Mapping[_HarmName, Count] | None
    labelled: Count
    right: Mapping[str, Count] | None


class ObservedHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a device while the run lasted.

    Attributes:
        device: name of the device.
        temperatures_celsius: degrees Celsius, by thermal zone.
        frequencies_mhz: MHz, by core.
        canaries: how often the canary gave its first answer, its first label with other raw
            outputs, another label.
        pauses: how often the device was left to cool.
        paused_seconds: how long in all.
        failed: the canary changed its answer for good, and the run was stopped for that.

    """

    device: str
    temperatures_celsius: Mapping[str, Readings]
    frequencies_mhz: Mapping[str, Readings]
    canaries: Mapping[_CanaryName, CountFromOne]
    pauses: Count
    paused_seconds: Amount
    failed: bool


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """What a sensor gave."""

    first: Number
    min: Number
    max: Number
    last: Number


class ReplayOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What only a replay has.

    Attributes:
        run: the run that is replayed.
        baseline: the replay that this one is held against.
        mended: stored inputs that deviate no more.
        deviating_seeds: seeds of findings that deviate themselves now.
        new: seeds of what deviates now and did not in the baseline.
        changed_kind: stored inputs that deviate in another way than in the run.

    """

    run: ReplayedRun
    baseline: str | None
    mended: tuple[Finding, ...]
    deviating_seeds: tuple[int, ...]
    new: tuple[int, ...]
    changed_kind: tuple[ChangedKind, ...]


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a replay is of.

    Attributes:
        run: where it lies.
        devices: the names of its devices.
        compressed: path of its compressed model.

    """

    run: str
    devices: tuple[str, ...]
    compressed: str


class ChangedKind(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of a finding then and now."""

    seed_id: int
    before: str
    now: str


def to_json(part: msgspec.Struct) -> dict[str, Any]:
    """Return a document, or a part of one, as plain JSON values in the order of the file."""
    fields: dict[str, Any] = msgspec.to_builtins(part, enc_hook=written_text)
    return fields


def from_json(fields: Mapping[str, object]) -> RunDocument:
    """Return the document that keeps to the schema; see `load_document`.

    Raises:
        msgspec.ValidationError: it does not.

    """
    return msgspec.convert(fields, RunDocument, dec_hook=read_text)
