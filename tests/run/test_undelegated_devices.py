"""What is said of a delegate that was asked for and took nothing."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from documents import as_json
from edgeflare.run.derive_document import derive_document
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.undelegated_devices import undelegated

TOOK_NOTHING = {
    "runtime": "tflite-runtime",
    "runtime_version": "2.14.0",
    "kernels": "xnnpack",
    "delegated_nodes": 0,
    "total_nodes": 11,
    "delegate": None,
}


def said(**changes: Any) -> list[str]:
    return undelegated([{"name": "board", "provenance": {**TOOK_NOTHING, **changes}}])


def test_kernels_that_were_asked_for_and_did_not_run_are_named() -> None:
    assert said() == [
        "board: asked for xnnpack, but tflite-runtime 2.14.0 gave it none of the 11 nodes:"
        " optimized built-ins ran"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"delegated_nodes": 1},
        {"delegated_nodes": None, "total_nodes": None},
        {"kernels": "builtin"},
        {"kernels": "reference"},
    ],
)
def test_of_what_ran_as_asked_nothing_is_said(changes: dict[str, Any]) -> None:
    assert said(**changes) == []


def test_an_external_delegate_that_took_nothing_is_named() -> None:
    assert said(kernels="builtin", delegate="libedgetpu.so.1") == [
        "board: asked for the delegate libedgetpu.so.1, but tflite-runtime 2.14.0 gave it none of"
        " the 11 nodes"
    ]


def test_what_xnnpack_took_is_not_the_external_delegates() -> None:
    changes = {"delegate": "libedgetpu.so.1", "delegated_nodes": 11}
    assert said(**changes, external_nodes=0) == [
        "board: asked for the delegate libedgetpu.so.1, but tflite-runtime 2.14.0 gave it none of"
        " the 11 nodes"
    ]
    assert said(**changes, external_nodes=2) == []
    assert said(**changes, external_nodes=None) == []  # an agent that cannot tell


def test_each_device_speaks_for_itself() -> None:
    devices = [
        {"name": name, "provenance": {**TOOK_NOTHING, "kernels": kernels}}
        for name, kernels in (("a", "xnnpack"), ("b", "builtin"), ("c", "xnnpack"))
    ]
    assert [line.split(":")[0] for line in undelegated(devices)] == ["a", "c"]


def test_it_is_a_warning_of_the_run(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(run.folder / "run.db")
    try:
        header = deepcopy(journal.about())
        header["devices"][0]["provenance"] |= TOOK_NOTHING
        monkeypatch.setattr(Journal, "about", lambda _: header)
        assert as_json(derive_document(RunDirectory(run.folder), journal))["warnings"] == [
            *undelegated(header["devices"]),
            *run.document["warnings"],
        ]
        assert len(undelegated(header["devices"])) == 1
    finally:
        journal.close()
