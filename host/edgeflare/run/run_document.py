"""The canonical result of a run: `run.json`, schema `edgeflare.run/v1`, as types.

`run.schema.json` beside this file says the same to other programs, and describes each key; a test
holds the two to one another. docs/run.md says what each figure means. A key that the schema does
not require is None where it does not apply and a document lacks it; UNSET, which is false, where
None says something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from edgeflare.core.goal import Cause
from edgeflare.devices.provenance import Provenance
from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import RunPair
from edgeflare.pages.answers.answer_forms import RecordedAnswer
from edgeflare.run.coverage_figures import NeuronCoverage
from edgeflare.run.systematic.figures import SystematicDifferences
from edgeflare.run.without_reset import WithoutReset

SCHEMA = "edgeflare.run/v1"

Number = int | float
"""A number as JSON has it: of a file, one without a fraction is of type int."""


class RunDocument(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="schema", tag=SCHEMA
):
    """A run.

    Attributes:
        plan: all that was asked.
        unmutated: None in a replay.
        findings: verified ones, as the other lists in the order in which they were found.
        replay: what only a replay has.
        coverage: None where it was not asked for, or not measured to its end.

    """

    edgeflare: str
    stopped_by: str | None
    pair: RunPair
    devices: tuple[RunDevice, ...]
    host: RunHost
    ensemble: tuple[str, ...]
    strategy: str
    find: str
    rng_seed: int
    plan: Mapping[str, Any]
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
    """A device of a run, and what its agent said of itself."""

    name: str
    provenance: Provenance


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A stored input: a finding, verified or not, or a seed that deviates itself.

    Attributes:
        kind: why an arm failed, or how the compared arms deviate.
        host_gradients: of its chain; absent, as translated_evaluations, where none were asked for.
        labels: decision by arm, such as the top-1 label; None where the arm failed.
        tied: whether the decision hangs on a tie of raw outputs, by arm.
        by_tie: whether that the compared arms differ hangs on a tie.
        probabilities: that of each class, by arm; empty where `answers` say it.
        answers: how the answers are shown, one view for each head; absent where labels and
            probabilities say it all, as of a classifier with one head.
        seed_answers: the same of the seed; absent where the task does not show it.
        harm: one of `harm.HARMS`; None where that is not known.
        refined: None where it was not refined.
        image: path relative to the run directory, as `seed_image` is.
        seen: labels by arm in each repetition.
        nearness_db: to the seed, by the measure that `Nearness.measure` names; None for a seed that
            deviates itself, and where it is not known.
        within: whether it is as near as `--within` asks; None where nothing was asked.
        strong: whether it is as strong as `--min-strength` asks; None where nothing was asked.

    """

    seed_id: int
    seed_name: str
    seed_label: int | None
    seed_target: str | UnsetType = UNSET
    kind: str
    device: str
    queries: int
    device_queries: int
    host_gradients: int | UnsetType = UNSET
    translated_evaluations: int | UnsetType = UNSET
    seconds: Number
    labels: Mapping[str, int | None]
    tied: Mapping[str, bool]
    by_tie: bool
    probabilities: Mapping[str, tuple[Number, ...]]
    answers: tuple[RecordedAnswer, ...] | UnsetType = UNSET
    seed_answers: tuple[RecordedAnswer, ...] | UnsetType = UNSET
    cause: Cause | None
    device_sides_with_original: bool | None
    strength: Number | None
    harm: str | None
    distortion: Distortion
    refined: Refined | None
    operators: tuple[str, ...]
    image: str
    sha256: str
    seed_image: str
    verified: bool
    seen: tuple[Mapping[str, int | None], ...]
    nearness_db: Number | None
    within: bool | None
    strong: bool | None


class Distortion(msgspec.Struct, frozen=True):
    """Distance to the seed in levels, and the number of cells, such as pixels, that differ."""

    l2: Number
    linf: Number
    mean_abs: Number
    changed: int


class Refined(msgspec.Struct, frozen=True, kw_only=True):
    """What strengthening and shrinking cost, and what the finding was before."""

    queries: int
    device_queries: int
    strength_before: Number | None
    distortion_before: Distortion
    image_before: str


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of a whole run. Means and medians are None where nothing was found.

    `host_gradients` and `translated_evaluations` are None where the strategy asks for none; so is
    what refining, strengthening and shrinking cost where there was none of it.
    """

    seeds: int
    deviating_seeds: int
    searched: int
    findings: int
    success_rate: Number
    mean_queries: Number | None
    median_queries: Number | None
    queries: int
    mean_device_queries: Number | None
    device_queries: int
    overhead_queries: int
    overhead_device_queries: int
    host_evaluations: Mapping[str, int]
    host_gradients: int | None = None
    translated_evaluations: int | None = None
    setup_seconds: Number
    wall_seconds: Number
    refine_seconds: Number
    refined: int | None = None
    refine_queries: int | None = None
    refine_device_queries: int | None = None
    strengthen_queries: int | None = None
    strengthen_device_queries: int | None = None
    strengthen_seconds: Number | None = None
    shrink_queries: int | None = None
    shrink_device_queries: int | None = None
    shrink_seconds: Number | None = None
    verify_seconds: Number
    mean_seconds: Number | None
    device_busy_seconds: Number
    ties: int
    flaky: int
    harm: HarmTotals | None = None
    duplicates: Duplicates


class HarmTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are of each harm; see `harm.count_harms`."""

    deviating_seeds: Mapping[str, int] | None
    findings: Mapping[str, int] | None


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was found is the same input, of `triggers` that were compared."""

    triggers: int
    distinct: int
    exact: int
    near: int
    distinct_seeds: int


class Nearness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The share of all seeds that have a deviating input within a distance.

    Attributes:
        measure: name of the measure in dB; None for PSNR.
        curve: from where to where, two numbers of dB, the area is that under it; None for PSNR.
        db: shares by the measure.
        linf: shares by the largest change of a value.
        area: under the curve.

    """

    measure: str | None = None
    curve: tuple[Number, ...] | None = None
    db: tuple[DbShare, ...]
    linf: tuple[LinfShare, ...]
    area: Number


class DbShare(msgspec.Struct, frozen=True):
    """How many seeds have a deviating input of at least a nearness in dB."""

    at_least: Number
    seeds: int
    share: Number


class LinfShare(msgspec.Struct, frozen=True):
    """How many seeds have one whose largest change is at most so many levels."""

    at_most: Number
    seeds: int
    share: Number


class Unmutated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often the compared arms deviate on the seeds, and on the inputs of `--test`.

    Attributes:
        systematic: what differs in the same way on many seeds; None where nothing is significant.
        without_reset: what the twin answers where variables are not reset; None without variables.

    """

    seeds: DeviationRate
    test: DeviationRate | None = None
    systematic: SystematicDifferences | None = None
    without_reset: WithoutReset | None = None


class DeviationRate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often the arms deviate on inputs as they are, with the exact 95 % interval.

    Attributes:
        deviating: inputs on which the compared arms decide differently, or one fails.
        by_tie: of these, how many by a tie.
        tied: inputs on which the decision of a compared arm hangs on a tie.
        harm, harm_by_tie: who was right on those that deviate, and that do by a tie; None without
            labels.
        labelled: inputs whose label is known.
        right: of these, how many each arm decides as the label says; None where none is known.

    """

    path: str | None = None
    images: int
    deviating: int
    by_tie: int
    tied: int
    rate: Number
    low: Number
    high: Number
    harm: Mapping[str, int] | None
    harm_by_tie: Mapping[str, int] | None
    labelled: int
    right: Mapping[str, int] | None


class ObservedHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a device while the run lasted: degrees Celsius, MHz, and its canary."""

    device: str
    temperatures: Mapping[str, Readings]
    frequencies: Mapping[str, Readings]
    canaries: Mapping[str, int]
    pauses: int
    paused_seconds: Number
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
        of: the run that it replays.
        baseline: the replay that it is held against.
        mended: stored inputs that deviate no more.
        deviating_seeds: seeds of findings that deviate themselves now.
        new: seeds of what deviates now and did not in the baseline.
        changed_kind: stored inputs that deviate in another way than in the run.

    """

    of: ReplayedRun
    baseline: str | None
    mended: tuple[Finding, ...]
    deviating_seeds: tuple[int, ...]
    new: tuple[int, ...]
    changed_kind: tuple[ChangedKind, ...]


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a replay is of, the names of its devices, and the path of its model."""

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
    fields: dict[str, Any] = msgspec.to_builtins(part)
    return fields


def from_json(fields: Mapping[str, Any]) -> RunDocument:
    """Return the document that keeps to the schema; see `load_document`.

    Raises:
        msgspec.ValidationError: it does not.

    """
    return msgspec.convert(fields, RunDocument)
