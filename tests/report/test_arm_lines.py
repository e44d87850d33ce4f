"""What ran where, without what belongs to the machine that it ran on."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from documents import Document
from edgeflare.models.host_description import describe_host
from edgeflare.report.arm_lines import arm_lines, details
from edgeflare.run.run_document import from_json


@pytest.fixture
def document(run: Any) -> Document:
    copy: Document = deepcopy(run.document)
    copy["pair"] |= {"original": "/home/someone/a.onnx", "compressed": "models/b.tflite"}
    return copy


def test_each_arm_and_each_device_is_named(document: Document) -> None:
    document["devices"].append(deepcopy(document["devices"][0]) | {"name": "another"})
    document["devices"][1]["provenance"] |= {
        "soc": "BCM2711", "os": "Debian 12", "threads": 4, "delegated_nodes": 3, "total_nodes": 11,
    }  # fmt: skip
    document["ensemble"] = ["xnnpack", "reference"]
    original, twin, first, second = arm_lines(from_json(document))
    assert (original.arm, original.what, original.where) == ("original", "a.onnx", "host")
    assert (twin.arm, twin.what, twin.how) == (
        "twin",
        "b.tflite",
        "xnnpack kernels; also reference",
    )
    assert first.where == f"{document['devices'][0]['name']}: laboratory"
    assert second.where == "another: BCM2711, laboratory, Debian 12"
    assert second.how.endswith("builtin kernels, 3 of 11 nodes delegated, 4 threads")


def test_the_host_is_named_by_runs_that_know_it(document: Document) -> None:
    document["host"] = describe_host("a.tflite")
    document["host"] |= {"machine": "x86_64", "soc": "EPYC", "os": "Debian 12"}
    runtime = f"{document['host']['runtime']} {document['host']['runtime_version']}"
    original, twin, _ = arm_lines(from_json(document))
    assert original.where == twin.where == "host: EPYC, x86_64, Debian 12"
    assert original.how == runtime
    assert twin.how.startswith(f"{runtime}, ")
    assert twin.how.endswith(" kernels")


def test_a_run_without_an_original_has_none(document: Document) -> None:
    document["pair"]["original"] = None
    document["totals"]["host_evaluations"].pop("original")
    assert [one.arm for one in arm_lines(from_json(document))] == ["twin", "device"]


def test_details_are_names_and_texts() -> None:
    known = {
        "pair": {"original": "/home/someone/a.onnx", "seeds": "/data/seeds.npz"},
        "seeds": 1200, "rng_seed": 123456, "goal": {"ties": False, "min_strength": 0.05},
        "std": [0.5, 1.0], "limit": None, "soc": "",
    }  # fmt: skip
    assert details(known) == (
        ("pair original", "a.onnx"),
        ("pair seeds", "seeds.npz"),
        ("seeds", "1,200"),
        ("rng seed", "123456"),
        ("goal ties", "no"),
        ("goal min strength", "0.05"),
        ("std", "0.5, 1"),
    )
