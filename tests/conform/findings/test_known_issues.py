from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.conform.drafts.cells import chosen_cells, drawn_configuration
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.issue_probes import IssueProbe
from edgeflare.conform.findings.known_issues import (
    KnownFaults,
    KnownIssue,
    known_issues,
    named_version,
    read_issues,
    shipped_issue_files,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.kernel_judgement import Symptom
from edgeflare.errors import UserError

SYMPTOMS: Sequence[Symptom] = (
    *("wrong-values", "biased", "not-finite", "wrong-shape", "crash", "hang"),
)
WIRED = [one for one in known_issues() if one.wired]
PROBED = [one for one in known_issues() if one.probe and "refused" not in one.symptoms]


@pytest.mark.slow
def test_what_is_shipped_is_what_a_user_may_write() -> None:
    read = [issue for path in shipped_issue_files() for issue in read_issues(path)]
    assert read == [*known_issues()]
    assert len(read) > 50


def settings_of(issue: KnownIssue) -> dict[str, Setting]:
    assert issue.probe is not None
    settings = issue.probe.configuration
    facts = known_operators()[issue.operator].facts(issue.probe.type, settings)
    return {**settings, **facts}


def key_of(issue: KnownIssue) -> FindingKey:
    assert issue.probe is not None
    (symptom,) = [one for one in SYMPTOMS if one == issue.symptoms[0]]
    return FindingKey(issue.operator, issue.probe.type, "device", symptom, counted=True)


def linked(
    issue: KnownIssue,
    key: FindingKey,
    settings: Mapping[str, Setting],
    kernels: str = "",
    runtime: tuple[str, str] = ("", ""),
) -> KnownIssue | None:
    """Return what a finding is, among an entry and all those of other operators."""
    others = [one for one in known_issues() if one.operator != issue.operator]
    known = KnownFaults(
        issues=[issue, *others],
        kernels=kernels or issue.kernel_sets[0],
        runtime=runtime if any(runtime) else named_version(issue.seen[-1]),
    )
    return known.issue(key, ["device"], [settings] * 20)


@pytest.mark.parametrize("issue", PROBED, ids=lambda one: f"{one.name}-{one.operator}")
def test_the_least_model_of_an_issue_is_linked_with_it(issue: KnownIssue) -> None:
    assert linked(issue, key_of(issue), settings_of(issue)) == issue


def near_misses(rng: np.random.Generator) -> list[tuple[str, KnownIssue, KnownIssue | None]]:
    """Return entries, each with one term violated, and what is linked then.

    Each predicate of a condition is, and of the other terms one.
    """
    found = []
    for at in rng.permutation(len(PROBED)):
        issue = PROBED[at]
        key, settings = key_of(issue), settings_of(issue)
        for predicate in issue.condition:
            said = linked(issue, key, settings_without(issue, predicate, rng))
            found.append((predicate, issue, said))
        term = ["operator", "type", "symptom", "kernels", "version"]
        broken = term[int(rng.integers(len(term)))]
        if broken == "kernels":
            others = {"xnnpack", "builtin", "reference", "gpu", "micro"} - {*issue.kernel_sets}
            said = linked(issue, key, settings, kernels=sorted(others)[0])
        elif broken == "version":
            after = ("ai-edge-litert", issue.fixed)
            before = ("tflite-runtime", "2.5.0")
            said = linked(issue, key, settings, runtime=after if issue.fixed else before)
        else:
            other = "CONV_2D" if issue.operator != "CONV_2D" else "ADD"
            changed = {
                "operator": replace(key, operator=other),
                "type": replace(key, type=other_type(issue)),
                "symptom": replace(key, symptom="hang"),
            }
            said = linked(issue, changed[broken], settings)
        found.append((broken, issue, said))
    return found


def other_type(issue: KnownIssue) -> str:
    types = known_operators()[issue.operator].types
    return next((one for one in types if one not in issue.types), "float16")


def settings_without(
    issue: KnownIssue, predicate: str, rng: np.random.Generator
) -> dict[str, Setting]:
    """Return settings that meet all of an entry's condition but one predicate."""
    assert issue.probe is not None
    cell = (issue.operator, issue.probe.type)
    rest = FaultCondition.parsed([one for one in issue.condition if one != predicate])
    for _ in range(5000):
        drawn = drawn_configuration(cell, rng)
        if drawn is None:
            continue
        settings = {**drawn, **known_operators()[cell[0]].facts(cell[1], drawn)}
        if rest.holds(settings) and not FaultCondition.parsed([predicate]).holds(settings):
            return settings
    raise AssertionError(f"no model violates {predicate} alone")


def test_a_finding_that_misses_one_term_is_linked_with_nothing() -> None:
    missed = near_misses(np.random.default_rng(0))
    assert len(missed) >= 20
    assert {term for term, _, _ in missed} >= {"operator", "type", "kernels", "version", "symptom"}
    assert [(term, issue.name) for term, issue, said in missed if said is not None] == []


@pytest.mark.parametrize("issue", WIRED, ids=lambda one: one.operator or one.arrangement)
def test_operators_that_hang_together_otherwise_are_linked_with_nothing(issue: KnownIssue) -> None:
    (symptom,) = [one for one in SYMPTOMS if one == issue.symptoms[0]]
    type_ = issue.types[0] if issue.types else "float32"
    key = FindingKey(issue.operator or "ADD", type_, "device", symptom, counted=True)
    known = KnownFaults((), [issue], issue.kernel_sets[0], named_version(issue.seen[-1]))
    assert known.issue(key, ["device"], (), issue.wired) == issue
    for at in range(len(issue.wired)):
        less = (*issue.wired[:at], *issue.wired[at + 1 :], "a view of a view of another")
        assert known.issue(key, ["device"], (), less) is None


def test_a_kernel_set_that_fails_beside_the_device_has_to_be_of_the_entry() -> None:
    (issue,) = [one for one in known_issues() if one.thread == "LiteRT#4079"]
    runtime = ("ai-edge-litert", "2.3.0")
    known = KnownFaults((), [issue], "builtin", runtime, runtime)
    settings = [settings_of(issue)]
    host = FindingKey("SUM", "int8", "host", "wrong-values", counted=False, wrong=("reference",))
    assert known.issue(host, ("reference",), settings) == issue
    assert known.issue(host, ("xnnpack", "reference"), settings) is None
    shared = replace(host, verdict="shared", wrong=())
    assert known.issue(shared, ("device", "reference"), settings) is None


def test_operators_that_are_wrong_together_are_linked_by_how_they_hang_together() -> None:
    read = "the result of ADD is read and is an output"
    key = FindingKey("ADD then SUM", "float32", "device", "wrong-values", counted=True)
    known = KnownFaults((), known_issues(), "gpu", ("ai-edge-litert", "2.3.0"))

    def thread(key: FindingKey, *wired: str) -> str | None:
        issue = known.issue(key, ["device"], (), wired)
        return None if issue is None else issue.name

    assert thread(key, read, "a result of SUM is read by nothing") == "LiteRT#8599"
    assert thread(key, "an input is read by several") is None
    assert thread(key) is None
    assert thread(replace(key, operator="ADD then MUL"), read) is None
    assert thread(replace(key, type="int8"), read) is None
    given = thread(replace(key, operator="RELU"), "an input is an output")
    assert given == "a graph input that is a graph output too answers zeros or other memory"
    pad = replace(key, operator="PAD")
    assert known.issue(pad, ["device"], [{"shape": (2, 3, 4)}], ("a view of a view",)) is None


def test_what_is_shipped_says_of_each_thread_when_it_was_read() -> None:
    issues = known_issues()
    assert len(issues) >= 40
    assert sum(one.is_probed for one in issues) >= 50
    assert all(one.verified or one.note for one in issues)
    cells = set(chosen_cells())
    assert all((one.operator, type_) in cells for one in PROBED for type_ in one.types)


GOOD = """[[issue]]
says = "wraps"
operator = "SUM"
types = ["int8"]
condition = ["rank(shape) = 1"]
symptoms = ["wrong-values"]
kernel_sets = ["reference"]
seen = ["2.3.0"]
thread = "LiteRT#1"
state = "open"
read = "2026-09"

[issue.probe]
type = "int8"
constants = 0

[issue.probe.settings]
shape = [1]
axes = [0]
keep_dims = false
input_scale = 1.0
input_zero_point = 0
output_scale = 1.0
output_zero_point = 0
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[issue]]", "[[isue]]", "unknown key isue (did you mean 'issue'?)"),
        ('says = "wraps"', f'says = "{"w" * 401}"', "is longer than 400 characters"),
        ('says = "wraps"', r'says = "a\u001b[2J"', "or no line"),
        ('says = "wraps"', 'run = "rm"\nsays = "wraps"', "unknown key run"),
        ('operator = "SUM"', 'operator = "SUN"', "operator is 'SUN', which is not known"),
        ("rank(shape) = 1", "rank(shpae) = 1", "condition: 'shpae' in"),
        ("rank(shape) = 1", "__import__('os')", "is no predicate"),
        ('"reference"', '"refrence"', "kernel_sets is ['refrence']"),
        ('seen = ["2.3.0"]', 'seen = ["new"]', "'new' is no version"),
        ('seen = ["2.3.0"]', 'seen = ["2.3.0.rc1"]', "'2.3.0.rc1' is no version"),
        ("LiteRT#1", "see above", "thread is 'see above'"),
        ('read = "2026-09"', 'read = "lately"', "read is 'lately'"),
        ("constants = 0", "constants = -1", "probe: constants is -1"),
        ("shape = [1]", "shape = [70000]", "larger than 65,536 values"),
        ("shape = [1]", 'shape = "all"', "probe:"),
        ("shape = [1]", "shape = [2.5]", "probe: shape has 2.5: write whole numbers"),
        ("keep_dims = false\n", "", "probe: SUM has the parameters"),
        ('type = "int8"\nconst', 'kind = "int8"\nconst', "probe: unknown key kind"),
    ],
)
def test_a_strangers_file_is_refused_in_one_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "stranger.toml"
    path.write_text(GOOD)
    assert read_issues(path)[0].probe is not None
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UserError, match=r"stranger\.toml") as refused:
        read_issues(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


GRAPH = """[[issue]]
says = "is written over"
operator = "ADD then SUM"
wired = ["the result of ADD is read and is an output"]

[issue.graph]
outputs = ["0", "1"]

[[issue.graph.operators]]
operator = "ADD"
type = "float32"
reads = ["x", "x"]

[[issue.graph.operators]]
operator = "SUM"
type = "float32"
reads = ["0"]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('outputs = ["0", "1"]', "outputs = []", "write 1 to 16 operators, and outputs"),
        ('outputs = ["0", "1"]', 'outputs = ["2"]', "'2' is no result of an operator before"),
        ('reads = ["0"]', 'reads = ["1"]', "'1' is no result of an operator before"),
        ('operator = "SUM"', 'operator = "SUMM"', "operator 1: SUMM float32 is not known"),
        ('"float32"\nreads = ["0"]', '"float"\nreads = ["0"]', "SUM float is not known"),
        ('reads = ["0"]', "settings = { shape = [70000] }", "larger than 65,536 values"),
        ("[[issue.graph.operators]]", "[[issue.graph.nodes]]", "graph: unknown key nodes"),
        ('outputs = ["0", "1"]', "operators = 1", "graph: operators are no tables"),
    ],
)
def test_a_strangers_graph_is_refused_in_one_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "stranger.toml"
    path.write_text(GRAPH)
    (issue,) = read_issues(path)
    assert issue.graph is not None
    assert issue.is_probed
    changed = GRAPH.replace(old, new, 1)
    if new == "operators = 1":
        changed = changed[: changed.index("[[issue.graph")]
    path.write_text(changed)
    with pytest.raises(UserError, match=r"stranger\.toml") as refused:
        read_issues(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("operator", "settings"),
    [
        ("TILE", {"shape": [60000], "multiples": [60000], "index_type": "int32"}),
        ("MATRIX_DIAG", {"shape": [300]}),
        ("MATRIX_DIAG", {"shape": [10**9]}),
    ],
)
def test_a_probe_whose_result_is_huge_is_refused_before_it_is_built(
    operator: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="larger than 65,536 values"):
        IssueProbe("float32", settings).require_valid(operator)
