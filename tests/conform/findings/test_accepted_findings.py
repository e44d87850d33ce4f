from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformed_runs import constructed_conformance, finding_entry
from edgeflare.cli.conformance_presentation import accepted_text
from edgeflare.conform.findings.accepted_findings import (
    AcceptedFinding,
    accepted_reason,
    accepted_table,
    read_accepted,
)
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.specification.parameter import Setting
from edgeflare.errors import UserError

KEY = FindingKey("CONV_2D", "float32", "device", "wrong-values", counted=True)
WIDE = FaultCondition.parsed(["padding is SAME", "stride_w > kernel_w"])
TABLE = accepted_table(KEY, WIDE, "tensorflow 61815")
FAILING: list[Mapping[str, Setting]] = [
    {"padding": "SAME", "stride_w": 3, "kernel_w": 2},
    {"padding": "SAME", "stride_w": 2, "kernel_w": 1},
]


def written(folder: Path, text: str) -> Path:
    path = folder / "accepted.toml"
    path.write_text(text)
    return path


@settings(max_examples=20)
@given(reason=st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_any_reason_is_read_as_it_was_given(reason: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "accepted.toml"
        path.write_text(accepted_table(KEY, WIDE, reason), encoding="utf-8", newline="")
        assert read_accepted(path)[0].reason == reason


@pytest.mark.parametrize(
    "key",
    [
        FindingKey("DEPTHWISE_CONV_2D", "float32", "device", "wrong-values", counted=True),
        FindingKey("CONV_2D", "int8", "device", "wrong-values", counted=True),
        FindingKey("CONV_2D", "float32", "undefined", "wrong-values", counted=False),
        FindingKey("CONV_2D", "float32", "device", "biased", counted=True),
    ],
)
def test_another_operator_type_verdict_or_symptom_is_new(tmp_path: Path, key: FindingKey) -> None:
    assert accepted_reason(key, FAILING, read_accepted(written(tmp_path, TABLE))) is None


def test_a_finding_with_failing_models_outside_of_the_condition_is_new(tmp_path: Path) -> None:
    accepted = read_accepted(written(tmp_path, TABLE))
    assert accepted_reason(KEY, FAILING, accepted) == "tensorflow 61815"
    outside: Mapping[str, Setting] = {"padding": "VALID", "stride_w": 3, "kernel_w": 2}
    assert accepted_reason(KEY, [*FAILING, outside], accepted) is None
    assert accepted_reason(KEY, [*FAILING * 9, outside], accepted) is None
    assert accepted_reason(KEY, [*FAILING * 10, outside], accepted) == "tensorflow 61815"
    for other, reason in (("padding is VALID", "tensorflow 61815"), ("stride_w ≥ 2", "another")):
        beside = accepted_table(KEY, FaultCondition.parsed([other]), "another")
        both = read_accepted(written(tmp_path, f"{TABLE}\n{beside}"))
        assert accepted_reason(KEY, [*FAILING, outside], both) == reason
    lines = [one for one in TABLE.splitlines() if not one.startswith("condition")]
    always = read_accepted(written(tmp_path, "\n".join(lines)))
    assert accepted_reason(KEY, [*FAILING, outside], always) == "tensorflow 61815"
    assert read_accepted(written(tmp_path, "")) == ()


def test_a_bias_is_written_without_its_condition(tmp_path: Path) -> None:
    both = [
        finding_entry(operator="CONV_2D", condition=WIDE.texts, symptom=one)
        for one in ("wrong-values", "biased")
    ]
    text = accepted_text(constructed_conformance(both))
    wrong, biased = read_accepted(written(tmp_path, text))
    assert (wrong.symptom, list(wrong.condition)) == ("wrong-values", WIDE.texts)
    assert (biased.symptom, list(biased.condition)) == ("biased", [])


JOINED = replace(KEY, operator="RELU then NEG")


def test_operators_that_fail_joined_are_named_in_their_order(tmp_path: Path) -> None:
    table = accepted_table(JOINED, FaultCondition(), "a fused kernel")
    accepted = read_accepted(written(tmp_path, table))
    assert accepted_reason(JOINED, (), accepted) == "a fused kernel"
    for other in ("NEG then RELU", "RELU then NEG then NEG", "RELU", "NEG"):
        assert accepted_reason(replace(JOINED, operator=other), (), accepted) is None


WIRED = ["ADD reads one tensor twice", "the result of ADD is read and is an output"]


def test_a_graph_is_named_by_how_it_is_wired_and_never_as_its_operator_alone(
    tmp_path: Path,
) -> None:
    told = [*WIRED, "also of MUL"]
    key = replace(KEY, operator="ADD", type="uint8")
    alone = finding_entry(condition=["rank(shape) = 1"])
    entries = [finding_entry(condition=[], arrangement=told, detail="joined"), alone]
    text = accepted_text(constructed_conformance(entries))
    joined, of_one = read_accepted(written(tmp_path, text))
    assert (list(joined.wired), of_one.wired) == (WIRED, ())
    reason = accepted_reason(key, (), [of_one, joined], WIRED)
    assert reason is not None
    assert reason == joined.reason != of_one.reason
    assert accepted_reason(key, (), [of_one], WIRED) is None
    assert accepted_reason(key, (), [joined], WIRED[:1]) is None
    failing = [{"shape": (4,)}]
    assert accepted_reason(key, failing, [of_one]) == of_one.reason
    assert accepted_reason(key, failing, [joined]) is None


def test_a_graph_has_no_condition() -> None:
    said = "^condition is .*: operators that are wrong together have none"
    with pytest.raises(UserError, match=said):
        AcceptedFinding(
            *("ADD", "float32", "device", "wrong-values", "why"),
            condition=("rank(shape) = 1",),
            wired=("ADD reads one tensor twice",),
        )


@pytest.mark.parametrize(
    ("operator", "condition", "said"),
    [
        ("RELU then NGE", (), r"^operator is 'NGE', which is not known \(did you mean 'NEG'\?\)"),
        ("RELU then NEG", ("rank(shape) = 1",), "^condition is .*: operators that are wrong"),
    ],
)
def test_what_names_no_joined_operators_is_refused(
    operator: str, condition: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        AcceptedFinding(operator, "float32", "device", "wrong-values", "why", condition)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[[accepted]]",
            "[[acepted]]",
            "unknown key acepted (did you mean 'accepted'?): begin",
        ),
        (
            "[[accepted]]",
            "[accepted]",
            "accepted is no list of tables: begin each table by",
        ),
        ("[[accepted]]", "[[accepted]", "is not valid TOML"),
        ("CONV_2D", "CONV2D", "table 1: operator is 'CONV2D', which is not known (did you mean"),
        ("float32", "float64", "table 1: type is 'float64': write one that CONV_2D has: float32"),
        ("wrong-values", "wrong", "table 1: symptom is 'wrong': expected 'wrong-values' or"),
        ("stride_w >", "stride_w over", "table 1: condition: 'stride_w over kernel_w' is no pred"),
        ("stride_w >", "strde_w >", "table 1: condition: 'strde_w' in 'strde_w > kernel_w' is no "),
        (
            "stride_w > kernel_w",
            "rank(inputt) > 2",
            "table 1: condition: 'inputt' in 'rank(inputt) > 2' is no setting of CONV_2D",
        ),
        (
            "padding is SAME",
            "padding ≥ 3",
            "table 1: condition: 'padding' in 'padding ≥ 3' is no number: compare it",
        ),
        ('"device"', '"rounding"', "table 1: verdict is 'rounding': write one of device, host,"),
        ("reason", "because", "table 1: unknown key because"),
        ('operator = "CONV_2D"\n', "", "table 1: operator is missing: add it"),
        ('["padding is SAME", "stride_w > kernel_w"]', "3", "table 1: condition is 3: expected"),
    ],
)
def test_a_damaged_file_is_one_line_that_says_where_and_what_to_write(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TABLE
    path = written(tmp_path, TABLE.replace(old, new))
    with pytest.raises(UserError) as caught:
        read_accepted(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    written(tmp_path, TABLE)
    with pytest.raises(UserError, match=r"cannot be read: .* \(did you mean '.*accepted.toml'\?\)"):
        read_accepted(tmp_path / "acepted.toml")
