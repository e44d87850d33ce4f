"""The file that a pair runs: its own, or the folded one for as long as the pair is open."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.models.folded_pair import with_shapes_folded
from edgeflare.models.invocation import Invocation
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite import open_tflite


def test_a_pair_that_folds_nothing_runs_its_own_file(example: Path) -> None:
    pair = load_pair(example)
    with with_shapes_folded(pair) as opened:
        assert opened is pair
        assert opened.executed == pair.compressed


def test_the_folded_file_is_there_while_the_pair_is_open(example: Path) -> None:
    pair = load_pair(example, Settings(fold_shapes=True))
    with pytest.raises(ValueError, match="not folded yet"):
        _ = pair.executed
    with with_shapes_folded(pair) as opened:
        assert opened.folded is not None
        assert opened.compressed == pair.compressed
        assert sha256(opened.executed.read_bytes()).hexdigest() == opened.folded.sha256
        assert opened.folded.to_json()["operators"] == ["SHAPE", "STRIDED_SLICE", "PACK"]
        assert opened.fingerprint() == replace(pair, fold_shapes=False).fingerprint()
    assert not opened.executed.exists()


def test_what_is_refused_of_the_folded_file_names_the_users_own(example: Path) -> None:
    pair = load_pair(example, Settings(fold_shapes=True))
    with pytest.raises(UserError) as refused, with_shapes_folded(pair) as opened:
        open_tflite(opened.executed, invocation=Invocation("step"))
    said = str(refused.value)
    assert said.startswith(f"{pair.compressed} with its shapes folded: there is no signature")
