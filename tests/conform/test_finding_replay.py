"""What became of findings, on arms that compute exactly but for planted faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest
from msgspec import structs

from conformed_runs import BOARD, finding_fields
from conforming import BesideOthers, ExactArm, PlantedFault
from drafting import chain
from edgeflare.conform.conformance_arms import OpenedConformance
from edgeflare.conform.drafts.draft import draft_to_json
from edgeflare.conform.finding_replay import (
    RetriedFinding,
    replay_findings,
    retried_findings,
    stored_models,
)
from edgeflare.conform.record.conform_document import FoundFault, read_conformance
from edgeflare.conform.record.finding_files import StoredModel, store_finding, stored_model
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.devices.device import Device
from edgeflare.run.run_directory import RunDirectory

HOSTS = (ExactArm("xnnpack"), ExactArm("reference"))
WRAPS = PlantedFault("ADD", lambda settings: settings["output_scale"] != 0.125)
"""The fault of the first finding; the second one is said to crash, and does not."""


@pytest.fixture
def models(run_of_findings: Path) -> list[StoredModel]:
    directory = RunDirectory(run_of_findings)
    return [stored_model(directory, one) for one in read_conformance(directory).findings]


def retried(models: Sequence[StoredModel], *faults: PlantedFault) -> list[RetriedFinding]:
    return retried_findings(models, [ExactArm("device", faults), *HOSTS])


def test_the_same_kernels_fail_alike_and_what_they_do_right_is_mended(
    models: list[StoredModel],
) -> None:
    wraps, sound = retried(models, WRAPS)
    assert (wraps.outcome, wraps.judgement.verdict, wraps.counts) == ("still", "device", True)
    assert (sound.outcome, sound.counts) == ("mended", False)
    assert {*wraps.answers} == {"device", "xnnpack", "reference"}
    known = replace(models[0], finding=structs.replace(models[0].finding, accepted="a vendor's"))
    (still,) = retried([known], WRAPS)
    assert (still.outcome, still.counts) == ("still", False)
    assert [one.outcome for one in retried(models)] == ["mended", "mended"]


def test_a_device_without_an_answer_fails_otherwise_or_refuses(models: list[StoredModel]) -> None:
    crashed = retried(models, PlantedFault("ADD", failure="crash"))
    assert [(one.outcome, one.counts) for one in crashed] == [("otherwise", True), ("still", True)]
    refused = retried(models, PlantedFault("ADD", failure="refused"))
    assert [(one.outcome, one.counts) for one in refused] == [("refused", False)] * 2


def test_what_fails_again_is_a_run_that_is_read(run_of_findings: Path, tmp_path: Path) -> None:
    directory, out = RunDirectory(run_of_findings), RunDirectory(tmp_path)
    arms = (ExactArm("device", (PlantedFault("ADD", failure="crash"),)), *HOSTS)
    opened = OpenedConformance(cast("Device", None), BOARD, arms)
    document = read_conformance(directory)
    replay_findings(document, stored_models(directory, document), opened, out)
    found = read_conformance(out).findings
    assert [(one.symptom, one.unit) for one in found] == [("crash", None)] * 2


def test_a_model_that_fails_beside_others_has_others_beside_it(models: list[StoredModel]) -> None:
    one = replace(models[0], finding=structs.replace(models[0].finding, symptom="neighbours"))
    (found,) = retried_findings([one], [BesideOthers("device", (WRAPS,)), *HOSTS])
    assert (found.outcome, found.judgement.symptom) == ("still", "neighbours")


def test_operators_that_follow_each_other_are_run_one_by_one_and_whole(tmp_path: Path) -> None:
    draft = chain("RELU", "NEG")
    whole = posed(draft, {}).whole
    directory = RunDirectory(tmp_path)
    fields = finding_fields()
    fields["smallest"] |= {
        "file": store_finding(directory, 1, whole, {}, ()),
        "rows": whole.rows,
        "operators": json.loads(json.dumps(draft_to_json(draft))),
    }
    known = msgspec.convert(fields, FoundFault)
    (found,) = retried([stored_model(directory, known)])
    assert (found.outcome, found.judgement.verdict) == ("mended", "right")
    assert len(found.answers["device"].outputs) == 1
