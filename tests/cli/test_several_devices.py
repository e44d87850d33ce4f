"""`edgeflare search --device A --device B`: which device found what, and who may be named twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def search(call: Callable[..., Any], example: Path, out: Path, *options: str) -> Any:
    budget = ("--first", "4", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    return call("search", example, *budget, "--out", out, *options)


def entries(out: Path) -> dict[int, tuple[str, str, dict[str, int]]]:
    document = json.loads((out / "run.json").read_bytes())
    return {
        entry["seed_id"]: (entry["device"], entry["sha256"], entry["labels"])
        for entry in (*document["findings"], *document["deviating_seeds"])
    }


def test_two_kinds_of_devices_share_the_seeds(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    names = ("emulated-builtin", "emulated-reference")
    alone: list[dict[int, tuple[str, str, dict[str, int]]]] = []
    for name in names:
        assert search(call, example, tmp_path / name, "--device", name).code == 0
        alone.append(entries(tmp_path / name))

    said = search(call, example, tmp_path / "both", "--device", names[0], "--device", names[1])

    assert said.code == 0
    both = entries(tmp_path / "both")
    assert both == {
        seed_id: entry
        for k, found in enumerate(alone)
        for seed_id, entry in found.items()
        if seed_id % 2 == k
    }
    assert {name for name, _, _ in both.values()} == set(names)
    devices = json.loads((tmp_path / "both" / "run.json").read_bytes())["devices"]
    assert [device["name"] for device in devices] == list(names)
    assert [device["provenance"]["kernels"] for device in devices] == ["builtin", "reference"]
    assert all(name in said.out for name in names)


def test_an_emulated_device_is_started_as_often_as_it_is_named(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    once = ("--device", "emulated-builtin")
    assert search(call, example, tmp_path / "one", *once).code == 0
    assert search(call, example, tmp_path / "two", *once, *once).code == 0

    one, two = entries(tmp_path / "one"), entries(tmp_path / "two")
    assert {i: entry[1:] for i, entry in one.items()} == {i: entry[1:] for i, entry in two.items()}
    assert {name for name, _, _ in two.values()} == {"emulated-builtin", "emulated-builtin#2"}


def test_a_device_that_there_is_only_once(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    board = ("--device", "grpc://127.0.0.1:1")

    said = search(call, example, tmp_path / "run", *board, *board)

    assert said.code == 2
    assert said.complaint() == ('device "grpc://127.0.0.1:1" is named twice: name each device once')
    assert not (tmp_path / "run").exists()
