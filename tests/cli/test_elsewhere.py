"""`--ensemble KERNELS@PYTHON`: a member of the ensemble on another runtime of this host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laboratory import untimed

Call = Callable[..., Any]


@pytest.mark.old_board
def test_another_runtime_foretells_a_device_that_has_it(
    example: Path, call: Call, tmp_path: Path, old_board_python: Path, monkeypatch: Any
) -> None:
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "board.toml").write_text(
        f'transport = "emulated"\nkernels = "builtin"\npython = "{old_board_python}"\n'
    )
    monkeypatch.chdir(tmp_path)
    member = f"builtin@{old_board_python}"
    monkeypatch.setenv("HOME", str(tmp_path))
    device = ("--device", "board", "--trust")
    options = (
        *("--find", "kernel", *device, "--first", "6"),
        *("--shrink", "0", "--fail-on", "none"),
    )
    budget = ("--max-queries", "950")  # before near-ties are asked about too

    said = call(
        "search", example, *options, *budget, "--ensemble", f"xnnpack,{member}", "--out", "run"
    )

    assert said.code == 0, said.err
    document = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert document["ensemble"] == ["xnnpack", member]
    assert document["totals"]["host_evaluations"][f"twin-{member}"] > 0
    assert document["findings"]
    # It is the very runtime of the device, so whatever it foretells is so.
    assert document["totals"]["device_queries"] == len(document["findings"])
    again = call("search", example, *options, *budget, "--ensemble", f"xnnpack,{member}",
                 "--out", "run", "--resume")  # fmt: skip
    assert again.code == 0, again.err
    assert untimed(json.loads((tmp_path / "run" / "run.json").read_bytes())) == untimed(document)


@pytest.mark.parametrize(
    ("ensemble", "complaint"),
    [
        (
            "xnnpack,builtin@/no/such/python",
            "builtin@/no/such/python: there is no program '/no/such/python': name the Python of an"
            " environment that has another TFLite runtime, with its path",
        ),
        (
            "xnnpack,neon@python3",
            "neon@python3: there is no kernel set 'neon'; known are xnnpack, builtin, reference",
        ),
        (
            "builtin@python3,xnnpack",
            "--ensemble builtin@python3,xnnpack: the first is the twin's own, on this Python's"
            " runtime: put xnnpack or builtin or reference before builtin@python3",
        ),
    ],
)
def test_a_member_that_cannot_be(
    example: Path, call: Call, tmp_path: Path, ensemble: str, complaint: str
) -> None:
    said = call("search", example, "--ensemble", ensemble, "--out", tmp_path / "run")

    assert (said.code, said.complaint()) == (2, complaint)
    assert not (tmp_path / "run").exists()
