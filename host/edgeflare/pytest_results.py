"""Results of checks, searches and surveys as tests, whose failures say why a model may not ship.

    def test_the_release_may_ship(edgeflare):
        assert_may_ship(edgeflare.check("models/my_pair", inputs="test.npz"))

    def test_the_release_decides_as_its_original(edgeflare):
        assert_decides_alike(edgeflare.search("models/my_pair", total_queries=5000))

    def test_the_release_deviates_on_few_images(edgeflare):
        result = edgeflare.survey("models/my_pair", inputs="test.npz", gates=("rate<0.01",))
        assert_gates_hold(result)

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edgeflare.api.call_arguments import real_number, require_one_of
from edgeflare.errors import UserError

if TYPE_CHECKING:
    from edgeflare.api.check import CheckResult
    from edgeflare.api.search import SearchResult
    from edgeflare.run.run_document import Finding, RunDocument
    from edgeflare.survey.record.survey_document import SurveyDocument
    from edgeflare.survey.survey_preparation import SurveyRequest


def assert_may_ship(result: CheckResult, *, undecided: bool = False) -> None:
    """Fail unless a model may ship; the message says why not, and what to do.

    Args:
        result: result of a check.
        undecided: whether a check that decides nothing passes too.

    """
    __tracebackhide__ = True
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    said = result.document
    if result.may_ship or (undecided and said.verdict == "undecided"):
        return
    failed = [gate for gate in said.gates if gate.state == "fail"]
    lines = [
        f"{said.verdict}: {said.sentence}",
        *(f"gate {gate.name}: {gate.sentence}" for gate in failed),
        f"next: {said.next_step}",
        f"the check: {result.path}",
    ]
    pytest.fail(for_terminal("\n".join(lines)), pytrace=False)


def assert_decides_alike(
    result: SearchResult,
    *,
    allow: float = 0.0,
    fail_on: str = "any",
    allow_unfinished: bool = False,
) -> None:
    """Fail if more seeds than allowed deviate or led to a finding; the message shows the worst.

    Args:
        result: result of a search.
        allow: share of the seeds that may, from 0 to 1.
        fail_on: as of `edgeflare search --fail-on`: "harmful" counts only what the original (of
            kernels: the twin) decides right by the seed's label, and failures of the device;
            "kernel" what the device's kernels cause, and its failures.
        allow_unfinished: a search that was stopped before its end, as by `time_limit`, may pass.

    Raises:
        UserError: an argument is not what it should be.

    """
    __tracebackhide__ = True
    allow = real_number("allow", allow, 0.0, 1.0)
    from edgeflare.report.entry_words import worst_first  # noqa: PLC0415
    from edgeflare.run.gate import FAIL_ON, counting, deviation_rate  # noqa: PLC0415
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    require_one_of(
        "fail_on", fail_on, [name for name, condition in FAIL_ON.items() if condition.of_tests]
    )
    document = result.document
    if FAIL_ON[fail_on].needs_truth and document.totals.harm is None:
        raise UserError(
            f'fail_on="{fail_on}": the seeds have no labels or targets: give an .npz with them'
        )
    rate = deviation_rate(document, fail_on)
    if rate > allow:
        worst, *_ = worst_first(counting(document, fail_on))
        pytest.fail(
            for_terminal(_message(document, result.path, rate, allow, worst)), pytrace=False
        )
    if document.stopped_by and not allow_unfinished:
        totals = document.totals
        done = totals.searched + totals.deviating_seeds
        pytest.fail(
            for_terminal(
                f"{document.pair.name}: the search was stopped before its end"
                f" ({document.stopped_by}), with {done} of {totals.seeds} seeds done: give it more"
                " time, or fewer seeds with limit, or let it pass with allow_unfinished=True"
            ),
            pytrace=False,
        )


def _message(document: RunDocument, path: Path, rate: float, allow: float, worst: Finding) -> str:
    from edgeflare.pages.facts import count_of, in_words  # noqa: PLC0415
    from edgeflare.report.entry_words import (  # noqa: PLC0415
        cause_of,
        input_words,
        named_kind,
    )

    names = ", ".join(device.name for device in document.devices)
    lines = [
        f"{document.pair.name} decides differently on {names}: {rate:.1%} of"
        f" {count_of(document.totals.seeds, 'seed')}, {allow:.1%} allowed",
        f"the worst: seed {worst.seed_id}"
        + (
            " itself"
            if not worst.queries
            else f" after {count_of(worst.queries, 'query', 'queries')}"
        ),
    ]
    lines += _answers(document, worst)
    strength = "" if worst.strength is None else f", strength {worst.strength:.3f}"
    kind = f", {named_kind(worst)}" if named_kind(worst) else ""
    harm = f", {in_words(worst.harm)}" if worst.harm else ""
    lines += [
        f"  cause: {cause_of(worst)}{kind}{harm}{strength};"
        f" distance to the seed: L2 {worst.distortion.l2:.0f}",
        f"  {input_words(document.pair).one}: {path / worst.file}",
        f"all of them: edgeflare report {path}",
    ]
    return "\n".join(lines)


def _answers(document: RunDocument, entry: Finding) -> list[str]:
    """Return a line for what each arm decided, or one for how far their values are apart."""
    from edgeflare.report.entry_words import (  # noqa: PLC0415
        decided,
        decisions,
        edited_words,
        how_far_apart,
        is_structured,
        measured,
    )

    apart = how_far_apart(document, entry)
    if apart is not None or (measured(entry) is not None and not is_structured(entry)):
        return [f"  {decisions(document, entry)}"]
    lines = []
    for arm, label in entry.labels.items():
        said = f"no answer ({entry.kind})" if label is None else decided(document, entry, arm)
        given = entry.probabilities.get(arm)
        if label is not None and given:
            name = said if document.classes else f"class {label}"
            said = f"{name} ({given[label]:.1%})"
        lines.append(f"  {arm:<9} {said}")
    edits = edited_words(document, entry)
    return lines if edits is None else [*lines, f"  edit distance {edits}"]


@dataclass(frozen=True)
class SurveyResult:
    """A survey that has ended.

    Attributes:
        document: what survey.json holds, typed.
        path: directory of the run.

    """

    document: SurveyDocument
    path: Path


@dataclass(frozen=True)
class SurveyArguments:
    """What a test asks of a survey; see `edgeflare survey`."""

    pair: Path
    devices: Sequence[str]
    inputs: Path | None = None
    conditions: str | Sequence[str] | None = None
    severities: str | int | Sequence[int] = "1-5"
    groups: str | None = None
    precision: float | None = None
    device_queries: int | None = None
    time_limit_seconds: float | None = None
    confidence: float = 0.95
    gates: str | Sequence[str] = ()
    findings: int = 0
    limit: int | None = None
    first: int | None = None
    baseline: Path | None = None
    rare: bool = False
    rare_queries: int | None = None
    ensemble: str | None = None
    rng_seed: int = 0
    trust: bool = False
    trust_profiles: bool = False


def survey_in_test(asked: SurveyArguments, path: Path) -> SurveyResult:
    """Survey a pair into a run directory; a run that is there is replaced.

    Raises:
        UserError: an argument, the pair or a device's name is not what it should be.
        InfrastructureError: a device fails.

    """
    from contextlib import ExitStack  # noqa: PLC0415

    from edgeflare.campaign.observer import Unobserved  # noqa: PLC0415
    from edgeflare.core.interrupt import Interrupt  # noqa: PLC0415
    from edgeflare.core.seeds import SeedChoice  # noqa: PLC0415
    from edgeflare.devices.profile_lookup import find_profiles  # noqa: PLC0415
    from edgeflare.models.compressed_model import read_ensemble  # noqa: PLC0415
    from edgeflare.models.pair import load_pair  # noqa: PLC0415
    from edgeflare.models.pair_file import Settings  # noqa: PLC0415
    from edgeflare.run.run_directory import RunDirectory  # noqa: PLC0415
    from edgeflare.survey.phases.survey_observer import UnobservedSurvey  # noqa: PLC0415
    from edgeflare.survey.record.survey_document import read_survey  # noqa: PLC0415
    from edgeflare.survey.survey_preparation import open_survey  # noqa: PLC0415
    from edgeflare.survey.survey_run import (  # noqa: PLC0415
        begin_survey,
        run_survey,
        survey_run_plan,
    )
    from edgeflare.trust import granted  # noqa: PLC0415

    given = Settings(seeds=None if asked.inputs is None else str(asked.inputs))
    loaded = load_pair(asked.pair, given, trust=asked.trust, seeds_option="")
    profiles = find_profiles(asked.devices, granted(asked.trust or asked.trust_profiles))
    names = tuple(profile.name for profile in profiles)
    kernels, elsewhere = read_ensemble(asked.ensemble)
    choice = SeedChoice(asked.limit, asked.first)
    plan = survey_run_plan(loaded, names, asked.rng_seed, choice, kernels, elsewhere)
    request = _request(asked, loaded.interface.domain_name)
    with ExitStack() as stack:
        opened = open_survey(loaded, plan, request, profiles, stack)
        _, journal = begin_survey(opened, path, overwrite=True)
        stack.callback(journal.close)
        run_survey(
            opened,
            journal,
            observer=Unobserved(),
            survey_observer=UnobservedSurvey(),
            interrupt=Interrupt(),
        )
    return SurveyResult(read_survey(RunDirectory(path)), path)


def _request(asked: SurveyArguments, domain: str) -> SurveyRequest:
    from edgeflare.conditions.condition_choice import (  # noqa: PLC0415
        chosen_conditions,
        read_severities,
    )
    from edgeflare.survey.record.survey_plan import SurveyBounds  # noqa: PLC0415
    from edgeflare.survey.survey_preparation import (  # noqa: PLC0415
        SurveyRequest,
        load_baseline,
    )

    severities = read_severities(_as_text(asked.severities))
    given = {name: getattr(asked, name) for name in SurveyBounds.__struct_fields__}
    return SurveyRequest(
        chosen=chosen_conditions(domain, _names(asked.conditions), severities),
        bounds=SurveyBounds.asked(rare=asked.rare, **given),
        groups=asked.groups,
        own_inputs=asked.inputs is not None,
        baseline=None if asked.baseline is None else load_baseline(asked.baseline),
    )


def _names(conditions: str | Sequence[str] | None) -> str | None:
    """Return names of conditions as the command line has them."""
    if conditions is None or isinstance(conditions, str):
        return conditions
    if not isinstance(conditions, Sequence) or not all(
        isinstance(condition, str) for condition in conditions
    ):
        raise UserError(
            f'conditions={conditions!r}: expected names, such as "noise,fog" or ["noise", "fog"]'
        )
    return ",".join(conditions) or "none"


def _as_text(severities: str | int | Sequence[int]) -> str:
    """Return severities as the command line has them."""
    if isinstance(severities, (str, int)):
        return str(severities)
    return ",".join(map(str, severities))


def assert_gates_hold(result: SurveyResult) -> None:
    """Fail unless each gate of a survey is held; the message says what became of the others.

    Raises:
        UserError: the survey had no gates.

    """
    __tracebackhide__ = True
    from edgeflare.survey.presentation.survey_words import gate_sentence, next_arguments  # noqa: PLC0415
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    document = result.document
    if not document.gates:
        raise UserError('the survey had no gates: give some, such as gates=("rate<0.01",)')
    failed = [gate for gate in document.gates if gate.state != "pass"]
    if failed:
        lines = [f"gate {gate_sentence(gate)}{next_arguments(document, gate)}" for gate in failed]
        lines += [document.sentence, f"the run: {result.path}"]
        pytest.fail(for_terminal("\n".join(lines)), pytrace=False)
