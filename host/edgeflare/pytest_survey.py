"""A survey as a test, whose failure says which gates are not held.

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

from edgeflare.errors import UserError

if TYPE_CHECKING:
    from edgeflare.survey.record.survey_document import SurveyDocument
    from edgeflare.survey.survey_preparation import SurveyRequest


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
    time_limit: float | None = None
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
    loaded = load_pair(asked.pair, given, trust=asked.trust)
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
    failed = [gate for gate in document.gates if gate.state != "held"]
    if failed:
        lines = [f"gate {gate_sentence(gate)}{next_arguments(document, gate)}" for gate in failed]
        lines += [document.sentence, f"the run: {result.path}"]
        pytest.fail(for_terminal("\n".join(lines)), pytrace=False)
