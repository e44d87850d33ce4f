"""Tests of edgeflare.conform.retried_findings: what became of findings, by real kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from drafting import chain
from edgeflare.conform.drafts.draft_json import draft_to_json
from edgeflare.conform.execution.host_opener import HostOpener
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.record.conform_file import read_conformance
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.record.stored_model import StoredModel, stored_model
from edgeflare.conform.retried_findings import retried_findings
from edgeflare.conform.rounds.posed_draft import posed
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos.kernel_sets import Kernels

pytestmark = pytest.mark.slow


class AsDevice:
    """A kernel set of the host as a device, which may refuse or change what it answers."""

    name = "device"

    def __init__(self, kernels: Kernels, failure: RunFailure | None = None) -> None:
        self._arm = PackingArm(HostOpener(kernels))
        self._failure = failure
        self.neighbours = False

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        if self._failure is not None:
            return [ModelAnswer(failure=self._failure) for _ in models]
        beside = self.neighbours and len(models) > 1
        return [replace(one, neighbours=beside) for one in self._arm.run(models)]

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        alone = self._arm.run_alone(models, packed)
        both = zip(alone, packed, strict=True)
        return [replace(one, neighbours=other.neighbours) for one, other in both]

    def close(self) -> None:
        self._arm.close()


@pytest.fixture
def hosts() -> Iterator[list[KernelArm]]:
    arms: list[KernelArm] = [PackingArm(HostOpener("xnnpack")), PackingArm(HostOpener("reference"))]
    yield arms
    for arm in arms:
        arm.close()


@pytest.fixture
def models(run_of_findings: Path) -> list[StoredModel]:
    directory = RunDirectory(run_of_findings)
    return [stored_model(directory, one) for one in read_conformance(directory)["findings"]]


def test_the_same_kernels_fail_alike_and_what_they_do_right_is_mended(
    models: list[StoredModel], hosts: list[KernelArm]
) -> None:
    wraps, sound = retried_findings(models, [AsDevice("builtin"), *hosts])
    assert (wraps.outcome, wraps.judgement.verdict, wraps.counts) == ("still", "device", True)
    assert (sound.outcome, sound.counts) == ("mended", False)
    assert {*wraps.answers} == {"device", "xnnpack", "reference"}
    known = replace(models[0], finding={**models[0].finding, "known": "a vendor's"})
    first, second = retried_findings([known, models[0]], [AsDevice("builtin"), *hosts])
    assert (first.outcome, first.counts, second.counts) == ("still", False, True)


@pytest.mark.parametrize(
    ("failure", "outcomes"),
    [
        (RunFailure("crash", "SIGSEGV"), ["otherwise", "still"]),
        (RunFailure("refused", "unknown version"), ["refused", "refused"]),
    ],
)
def test_a_device_without_an_answer(
    models: list[StoredModel], hosts: list[KernelArm], failure: RunFailure, outcomes: list[str]
) -> None:
    found = retried_findings(models, [AsDevice("builtin", failure), *hosts])
    assert [one.outcome for one in found] == outcomes
    assert [one.counts for one in found] == [one != "refused" for one in outcomes]


def test_a_model_that_fails_beside_others_has_others_beside_it(
    models: list[StoredModel], hosts: list[KernelArm]
) -> None:
    one = replace(models[0], finding={**models[0].finding, "symptom": "neighbours"})
    device = AsDevice("reference")
    device.neighbours = True
    (found,) = retried_findings([one], [device, *hosts])
    assert (found.outcome, found.judgement.symptom) == ("still", "neighbours")


def test_operators_that_follow_each_other_are_run_one_by_one_and_whole(
    hosts: list[KernelArm], tmp_path: Path
) -> None:
    draft = chain("RELU", "NEG")
    whole = posed(draft, {}).whole
    directory = RunDirectory(tmp_path)
    smallest = {
        "file": store_finding(directory, 1, whole, {}, ()),
        "rows": whole.rows,
        "operators": draft_to_json(draft),
    }
    known = {"smallest": smallest, "verdict": "device", "symptom": "wrong values", "known": None}
    one = stored_model(directory, known)
    (found,) = retried_findings([one], [AsDevice("builtin"), *hosts])
    assert (found.outcome, found.judgement.verdict) == ("mended", "right")
    assert [said is not None and said.verdict for said in found.judged.nodes] == ["right", "right"]
    assert len(found.answers["device"].outputs) == 1
