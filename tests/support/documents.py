"""Documents of runs for tests: as plain JSON to be changed, and made of a few fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import RunPair
from edgeflare.run.run_document import SCHEMA, Finding, RunDevice, RunDocument, from_json, to_json

Document = dict[str, Any]
"""A document as `run.json` has it."""

DISTORTION: dict[str, Any] = {"l2": 9.0, "linf": 3.0, "mean_abs": 1.0, "changed": 1}
FINDING: dict[str, Any] = {
    "seed_id": 1, "seed_name": "1", "seed_label": None, "kind": "deviation", "device": "board",
    "queries": 9, "device_queries": 9, "seconds": 0.5, "labels": {}, "tied": {}, "by_tie": False,
    "probabilities": {}, "cause": None, "device_sides_with_original": None, "strength": None,
    "harm": None, "nearness_db": None, "within": None, "strong": None, "refined": None,
    "operators": [], "file": "findings/000001.png", "sha256": 64 * "a",
    "seed_file": "seeds/000001.png", "verified": True, "seen": [],
}  # fmt: skip
TOTALS: dict[str, Any] = {
    "seeds": 2, "deviating_seeds": 0, "searched": 2, "findings": 1, "success_rate": 0.5,
    "mean_queries": 9, "median_queries": 9, "queries": 20, "mean_device_queries": 9,
    "device_queries": 20, "overhead_queries": 5, "overhead_device_queries": 5,
    "host_evaluations": {"original": 25, "twin-xnnpack": 25}, "setup_seconds": 1.0,
    "wall_seconds": 2.0, "refine_seconds": 0, "verify_seconds": 0.5, "mean_seconds": 0.5,
    "device_busy_seconds": 1.0, "ties": 0, "flaky": 0,
    "duplicates": {"triggers": 0, "distinct": 0, "exact": 0, "near": 0, "distinct_seeds": 0},
}  # fmt: skip
PAIR: dict[str, Any] = {
    "name": "pair", "fingerprint": "f", "original": None, "compressed": "compressed.tflite",
    "seeds": "seeds.npz", "sha256": {"original": None, "compressed": 64 * "a"}, "outputs": None,
}  # fmt: skip
HOST: dict[str, Any] = {
    "machine": "x86_64", "soc": "", "cpu_features": ["avx", "avx2"], "os": "Linux", "cores": 2,
    "python": "3.11.2", "runtime": "runtime", "runtime_version": "1", "original_runtime": None,
    "libraries": {"numpy": "2.2.0", "opencv": "4.11.0"},
}  # fmt: skip
DEVICE: dict[str, Any] = {
    "name": "board", "transport": "emulated", "machine": "aarch64", "soc": "",
    "cpu_features": ["asimd", "fp"], "os": "", "cores": 4, "governor": "", "python": "3.11.2",
    "runtime": "runtime", "runtime_version": "1", "kernels": "builtin", "threads": 1,
    "link_delay_seconds": 0.0, "agent_version": "1.0", "protocol": "1.0", "delegated_nodes": None,
    "total_nodes": None, "delegate": None, "external_nodes": None, "adapter": None,
    "precision": None, "fallback": None, "arena_bytes": None, "cache": None,
}  # fmt: skip
RUN: dict[str, Any] = {
    "schema": SCHEMA, "edgeflare": "1.0", "stopped_by": None,
    "pair": PAIR, "devices": [{"name": "board"}], "host": HOST,
    "ensemble": ["xnnpack"], "strategy": "random", "find": "any",
    "rng_seed": 0,
    "plan": {
        "strategy": "random", "devices": ["board"], "operators": [], "rng_seed": 0,
        "goal": {"find": "any", "ties": False},
    },
    "classes": [], "warnings": [], "health": [], "totals": {},
    "nearness": {
        "db": [{"at_least_db": 30.0, "seeds": 0, "share": 0.0}],
        "linf": [{"at_most_levels": 8.0, "seeds": 0, "share": 0.0}], "area": 0.0,
    }, "deviating_seeds": [], "findings": [],
    "flaky": [], "unverified": [],
}  # fmt: skip
REPLAY: dict[str, Any] = {
    "run": {"run": "runs/before", "devices": ["board"], "compressed": "compressed.tflite"},
    "baseline": None, "mended": [], "deviating_seeds": [], "new": [], "changed_kind": [],
}  # fmt: skip
"""What only a replay has."""

REFINED: dict[str, Any] = {
    "queries": 10, "device_queries": 10, "strength_before": 0.1, "distortion_before": DISTORTION,
    "file_before": "refined/000001.png",
}  # fmt: skip
"""What a finding has that was refined."""

LISTS = ("deviating_seeds", "findings", "flaky", "unverified")


def as_json(document: RunDocument) -> Document:
    """The document as the file has it, for a test to look into or to change."""
    plain: Document = json.loads(json.dumps(to_json(document)))
    return plain


def finding(**fields: Any) -> Finding:
    """A finding with these fields, of a run whose models are nobody's."""
    return msgspec.convert(_finding(fields), Finding)


def run_document(**fields: Any) -> RunDocument:
    """A document with these fields; its parts, too, may name some of theirs only."""
    plain: Document = {**RUN, **msgspec.to_builtins(fields)}
    plain["pair"] = {**PAIR, **plain["pair"]}
    plain["plan"] = {**RUN["plan"], **plain["plan"]}
    plain["totals"] = {**TOTALS, **plain["totals"]}
    plain["devices"] = [{"provenance": DEVICE, **device} for device in plain["devices"]]
    for key in LISTS:
        plain[key] = [_finding(entry) for entry in plain[key]]
    return from_json(plain)


def run_pair(**fields: Any) -> RunPair:
    """A pair with these fields."""
    return msgspec.convert({**PAIR, **fields}, RunPair)


def run_host(**fields: Any) -> RunHost:
    """A host with these fields."""
    return msgspec.convert({**HOST, **fields}, RunHost)


def run_device(name: str = "board", **fields: Any) -> RunDevice:
    """A device with these fields of its provenance."""
    provenance = {**DEVICE, "name": name, **fields}
    return msgspec.convert({"name": name, "provenance": provenance}, RunDevice)


def _finding(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**FINDING, **fields, "distortion": {**DISTORTION, **fields.get("distortion", {})}}
