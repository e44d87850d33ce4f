"""Surveys as tests, in a user's own pytest."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from edgeflare.errors import UserError
from edgeflare.pytest_plugin import EdgeFlare, SurveyResult, assert_gates_hold
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.record.survey_document import read_survey

pytestmark = pytest.mark.slow

_FAILED = ("open", "fail")

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = EXAMPLES / "spoken_words"


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> SurveyResult:
    edgeflare = EdgeFlare(["emulated-builtin"], tmp_path_factory.mktemp("surveys") / "run")
    return edgeflare.survey(
        WORDS,
        conditions="white-noise",
        severities="3",
        gates=("rate<0.5", "rate<0.001 under white-noise"),
        device_queries=150,
    )


def test_a_survey_returns_its_document(surveyed: SurveyResult) -> None:
    assert read_survey(RunDirectory(surveyed.path)) == surveyed.document
    assert (surveyed.path / "run.json").is_file()
    assert surveyed.document.asked <= 150
    assert not surveyed.document.findings


def test_a_build_is_compared_with_the_one_before(surveyed: SurveyResult, tmp_path: Path) -> None:
    """On a device of the twin's kernels, of which the ensemble foretells the one before."""
    edgeflare = EdgeFlare(["emulated-xnnpack"], tmp_path / "run")
    now = edgeflare.survey(
        WORDS,
        conditions="white-noise",
        severities="3",
        device_queries=150,
        baseline=surveyed.path,
        ensemble="xnnpack,builtin",
    ).document
    assert now.plan.ensemble == ("xnnpack", "builtin")
    assert now.baseline is not None
    assert 0 < now.baseline.overall.both <= min(now.asked, surveyed.document.asked)
    assert now.baseline.run == str(surveyed.path)


def test_rare_events_are_looked_for(tmp_path: Path) -> None:
    edgeflare = EdgeFlare(["emulated-builtin"], tmp_path / "run")
    document = edgeflare.survey(
        EXAMPLES / "fashion_lenet4",
        conditions=["contrast"],
        severities=1,
        first=30,
        device_queries=30,
        rare=True,
        rare_queries=100,
    ).document
    assert document.plan.rare_queries == 100
    assert document.rare is not None
    assert 0.0 <= document.rare.low <= document.rare.value
    assert document.rare.device_queries >= 100


def test_gates_that_are_not_held_fail_by_name(surveyed: SurveyResult) -> None:
    first, second = surveyed.document.gates
    assert first.state == "pass"
    assert second.state == "open"
    with pytest.raises(pytest.fail.Exception) as failed:
        assert_gates_hold(surveyed)
    message = str(failed.value)
    assert "gate rate<0.001 under white-noise is undecided" in message
    assert "rate<0.5" not in message
    assert surveyed.document.sentence in message


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("device-queries", "; to decide it, give a larger device_queries="),
        ("time-limit", "; to decide it, give a longer time_limit="),
    ],
)
def test_an_undecided_gate_says_what_to_change(
    ended: str, said: str, surveyed: SurveyResult
) -> None:
    gates = tuple(replace(surveyed.document.gates[1], state=state) for state in _FAILED)
    document = replace(surveyed.document, stopped_by=ended, gates=gates)
    with pytest.raises(pytest.fail.Exception) as failed:
        assert_gates_hold(SurveyResult(document, surveyed.path))
    first, second, *_ = str(failed.value).splitlines()
    assert first.endswith(said)
    assert "to decide it" not in second


def test_gates_that_are_held_pass(surveyed: SurveyResult) -> None:
    held = replace(surveyed.document, gates=surveyed.document.gates[:1])
    assert_gates_hold(SurveyResult(held, surveyed.path))


def test_a_survey_without_gates_holds_nothing(surveyed: SurveyResult) -> None:
    with pytest.raises(UserError, match="had no gates"):
        assert_gates_hold(SurveyResult(replace(surveyed.document, gates=()), surveyed.path))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"precision": 2.0}, "precision=2.0: expected a number from 1e-06 to 0.5"),
        ({"device_queries": 0}, "device_queries=0"),
        ({"gates": ("fast",)}, "gates 'fast'"),
        ({"conditions": ["noise", "fgo"]}, "conditions fgo"),
        ({"conditions": 3}, "conditions=3: expected names"),
        ({"conditions": [3]}, "conditions=[3]: expected names"),
        ({"limit": 0}, "limit=0: expected a whole number of 1 or more"),
        ({"ensemble": "xnnpak"}, "there is no kernel set 'xnnpak'"),
        (
            {"rare": True, "rare_queries": 99},
            "rare_queries=99: expected a whole number of 100",
        ),
        ({"rare_queries": 200}, "rare_queries=200: is of rare events; add rare=True"),
        ({"rare": True, "conditions": "none"}, "rare events are looked for under conditions"),
    ],
)
def test_an_argument_out_of_its_range_is_refused(
    arguments: dict[str, object], said: str, tmp_path: Path
) -> None:
    edgeflare = EdgeFlare(["emulated-builtin"], tmp_path / "run")
    with pytest.raises(UserError) as refused:
        edgeflare.survey(WORDS, **arguments)  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_pair_that_is_not_there_is_refused_without_options_of_commands(tmp_path: Path) -> None:
    edgeflare = EdgeFlare(["emulated-builtin"], tmp_path / "run")
    with pytest.raises(UserError, match=r"give a folder that holds a pair\.toml$"):
        edgeflare.survey(tmp_path / "lost")
