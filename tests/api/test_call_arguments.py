"""Arguments of calls from Python that are not what they should be: each is named in one line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgeflare
from called_commands import EXAMPLES
from edgeflare.api.call_arguments import device_names, names_of, real_number, whole_number
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.record import folder

EXAMPLE = EXAMPLES / "fashion_lenet4"


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        ("check", {"limit": True}, "limit=True: expected a whole number of 1 or more"),
        ("check", {"inputs": np.zeros(3)}, "inputs: expected a path, not a value of type ndarray"),
        ("check", {"inputs": b"seeds.npz"}, "inputs: expected a path, not a value of type bytes"),
        ("check", {"device": []}, "device: no name is given"),
        ("check", {"device": None}, "device=None: expected a string or several"),
        ("check", {"device": [3]}, "device=3: expected a string"),
        ("check", {"gates": None}, "gates=None: expected a string or several"),
        ("check", {"out": None, "resume": True}, "resume has to know the folder: give out too"),
        ("check", {"time_limit": "60s"}, "time_limit='60s': expected a number of 0.001 or more"),
        ("check", {"overwrite": True, "resume": True}, "resume goes on with"),
        ("search", {"overwrite": True, "resume": True}, "resume goes on with"),
        ("search", {"time_limit": 0}, "time_limit=0: expected a number of 0.001 or more"),
        ("search", {"rng_seed": None}, "rng_seed=None: expected a whole number of 0 or more"),
        ("search", {"rng_seed": 2**60}, "expected a whole number from 0 to 9007199254740991"),
        ("search", {"shrink": None}, "shrink=None: expected a whole number of 0 or more"),
        ("search", {"min_strength": None}, "min_strength=None: expected a number from 0 to 1"),
        ("search", {"strategy": 3}, "strategy=3: expected a string"),
        ("search", {"operators": None}, "operators=None: expected a string or several"),
        ("search", {"within": float("nan")}, "within=nan: expected a number"),
        (
            "search",
            {"total_queries": 40.0},
            "total_queries=40.0: expected a whole number",
        ),
        ("layers", {"device": ["emulated-builtin"]}, "expected a string"),
        ("layers", {"limit": None}, "limit=None: expected a whole number of 1 or more"),
    ],
)
def test_an_argument_that_is_not_what_it_should_be_is_named_before_anything_is_written(
    tmp_path: Path, call: str, arguments: dict[str, Any], said: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(UserError, match=said):
        getattr(edgeflare, call)(EXAMPLE, **{"out": out, **arguments})
    assert not out.exists()


@pytest.mark.parametrize("call", ["check", "search", "layers"])
@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_path_that_is_none_is_said_in_a_line(tmp_path: Path, call: str, name: str) -> None:
    with pytest.raises(UserError, match=r"too long|null character"):
        getattr(edgeflare, call)(EXAMPLE, out=str(tmp_path / name), progress=False)


@pytest.mark.parametrize("call", ["check", "layers"])
def test_a_disk_without_room_is_trouble_with_the_infrastructure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folder, "begin_list", full)
    with pytest.raises(InfrastructureError, match="No space left on device"):
        getattr(edgeflare, call)(EXAMPLE, out=tmp_path / "out", progress=False)


def test_numbers_of_numpy_are_taken_as_numbers() -> None:
    taken = whole_number("limit", np.int64(3), 1), real_number("budget", np.float32(2.5), 0.0)
    assert taken == (3, 2.5)
    assert [type(number) for number in taken] == [int, float]


def test_one_name_stands_for_a_list_of_one() -> None:
    assert names_of("gates", "accuracy-drop<0.02") == ("accuracy-drop<0.02",)
    assert device_names("pixel") == device_names(["pixel"]) == ("pixel",)


def test_a_device_is_named_by_a_string_and_opens_a_model_named_by_one() -> None:
    with pytest.raises(UserError, match="name=3: expected a string"):
        edgeflare.open_device(3)  # type: ignore[arg-type]
    with edgeflare.open_device() as device:
        assert device.open(str(EXAMPLE / "compressed.tflite")).signature.inputs
