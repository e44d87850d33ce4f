"""What lies where the inputs are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import UserError
from edgeflare.release.assumptions.input_source import GivenInputs


def test_python_objects_beside_the_inputs_are_left_unread(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.ones((2, 6)), names=np.array(["a", "b"], object), y=np.array([None]))
    given = GivenInputs.at(path)
    assert [*given.arrays] == ["x"]
    assert given.listed == "x float64 (2, 6), y of Python objects"


def test_what_is_damaged_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    path.write_bytes(b"text")
    with pytest.raises(UserError, match=r"inputs.npz: not an .npz file of arrays \(.*zip"):
        GivenInputs.at(path)


def test_arrays_of_a_folder_that_are_unlike_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(6))
    np.save(tmp_path / "b.npy", np.ones(7))
    with pytest.raises(UserError, match=r"a.npy has the shape \(6,\) and .*b.npy \(7,\)"):
        GivenInputs.at(tmp_path)
    (tmp_path / "b.npy").write_bytes(b"text")
    with pytest.raises(UserError, match=r"b.npy is no .npy file of numbers"):
        GivenInputs.at(tmp_path)
