"""Whatever joins answers that were given apart is held to one list of what decides them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformed_runs import BOARD
from conforming import a_header
from documents import run_device, run_host, run_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.device import require_same_device
from edgeflare.devices.provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    OPENED_MODEL_DECIDES,
    Provenance,
)
from edgeflare.diagnose.explain_findings import is_the_runs_own
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.repair import repair_run
from edgeflare.repair.candidate_store import RepairIdentity, StoredCandidates
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_run import repair_identity
from edgeflare.run.merge.run_part import RunPart, require_mergeable
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader, require_same
from edgeflare.run.seed_ids import SeedIds

Known = Mapping[str, Any]

DEVICE: Known = replace(BOARD, soc="BCM2711", delegated_nodes=3, total_nodes=9).to_json()
HOST: Known = {
    "machine": "x86_64",
    "cpu_features": ["avx"],
    "runtime": "ai-edge-litert",
    "runtime_version": "2.3.0",
    "original_runtime": None,
    "libraries": {"numpy": "2.2.0", "opencv": "4.11.0"},
}

OTHER: Known = {
    "cpu_features": ["asimd", "avx", "i8mm", "avx2"],
    "libraries": {"numpy": "2.3.0"},
    "threads": 2,
    "fallback": True,
    "delegated_nodes": 4,
    "external_nodes": 1,
    "total_nodes": 8,
    "arena_bytes": 9,
    "precision": "fp16",
}
"""Other values of what is no name."""


def header(device: Known, host: Known) -> RunHeader:
    """Return a run on a device beside a host."""
    return RunHeader(
        version="test",
        pair=run_pair(fingerprint="0"),
        plan=Plan("boundary", Goal(), (device["name"],)),
        devices=(run_device(**device),),
        arms={},
        classes=(),
        labels=None,
        host=run_host(**host),
        all_seeds=SeedIds.first(1),
    )


def resume(one: RunHeader, other: RunHeader) -> None:
    """Go on with a search, a survey, a replay, or a run of a bench or a ranking."""
    require_same(one, other, "runs/one")


def merge(one: RunHeader, other: RunHeader) -> None:
    parts = [
        RunPart(
            cast("Any", SimpleNamespace(path=name)), cast("Any", None), {}, of, SeedIds.first(1)
        )
        for name, of in (("a", one), ("b", other))
    ]
    require_mergeable(parts, allow_other_host=False)


def resume_repair(one: RepairIdentity, other: RepairIdentity, folder: Path) -> None:
    StoredCandidates(folder / "repair", one, resume=False)
    StoredCandidates(folder / "repair", other, resume=True)


def repair_of(device: Known, monkeypatch: pytest.MonkeyPatch, host: Known) -> RepairIdentity:
    """Return what a repair is about on a device beside a host."""
    monkeypatch.setattr(repair_run, "describe_host", lambda _: run_host(**host))
    pair = SimpleNamespace(fingerprint=lambda: "0", original="a.tflite")
    opened = SimpleNamespace(pair=pair, devices=[SimpleNamespace(provenance=provenance(device))])
    request = RepairRequest("auto", "float", False, "+5%", "+5%", None)
    return repair_identity(cast("Any", opened), None, request)


def trust_answers(begun: RunHeader, device: Known) -> None:
    """Take what a run says the device answered, as `explain` does where it may."""
    now = SimpleNamespace(
        provenance=provenance(device), profile=SimpleNamespace(name=device["name"])
    )
    if not is_the_runs_own(begun, cast("Any", now)):
        raise UserError("the device is asked again")


def provenance(device: Known) -> Provenance:
    return Provenance(**{**device, "cpu_features": tuple(device["cpu_features"])})


def changed(known: Known, key: str) -> dict[str, Any]:
    other = {**known, key: OTHER.get(key, f"not {known[key]}")}
    return cast("dict[str, Any]", json.loads(json.dumps(other)))


@pytest.mark.parametrize("key", [*DEVICE_DECIDES, *OPENED_MODEL_DECIDES])
def test_all_commands_refuse_a_device_of_the_same_name_that_may_answer_otherwise(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, now = header(DEVICE, HOST), header(changed(DEVICE, key), HOST)
    conformed = replace(a_header(), device=provenance(DEVICE))
    joins: dict[str, Callable[[Known], None]] = {
        "resume": lambda device: resume(begun, header(device, HOST)),
        "merge": lambda device: merge(begun, header(device, HOST)),
        "reconnect": lambda device: require_same_device(provenance(DEVICE), provenance(device)),
    }
    if key in DEVICE_DECIDES:  # what has answers of several models knows of none which nodes it ran
        joins |= {
            "conform": lambda device: conformed.require_same(
                replace(conformed, device=provenance(device)), "runs/one"
            ),
            "repair": lambda device: resume_repair(
                repair_of(DEVICE, monkeypatch, HOST), repair_of(device, monkeypatch, HOST), tmp_path
            ),
            "explain": lambda device: trust_answers(begun, device),
        }
    for join in joins.values():
        join({**DEVICE, "cores": 64, "governor": "performance"})
    assert accepted(joins, now.devices[0].provenance.to_json()) == []


@pytest.mark.parametrize("key", HOST_DECIDES)
def test_all_commands_refuse_a_host_that_may_answer_otherwise(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, conformed = header(DEVICE, HOST), replace(a_header(), host=run_host(**HOST))
    joins: dict[str, Callable[[Known], None]] = {
        "resume": lambda host: resume(begun, header(DEVICE, host)),
        "merge": lambda host: merge(begun, header(DEVICE, host)),
        "conform": lambda host: conformed.require_same(
            replace(conformed, host=run_host(**host)), "runs/one"
        ),
        "repair": lambda host: resume_repair(
            repair_of(DEVICE, monkeypatch, HOST), repair_of(DEVICE, monkeypatch, host), tmp_path
        ),
    }
    for join in joins.values():
        join({**HOST, "cores": 64})
    assert accepted(joins, changed(HOST, key)) == []


def accepted(joins: Mapping[str, Callable[[Known], None]], known: Known) -> list[str]:
    """Return what joins work although a device or a host is another one."""
    names = []
    for name, join in joins.items():
        try:
            join(known)
        except EdgeFlareError:
            continue
        names.append(name)
    return names
