"""What is said to whoever names models without a pair.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import OperatorMissing
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.named_models import LoadedModels, NamedModels

MODELS = [Path("f.tflite"), Path("g.tflite")]
LOADED = LoadedModels(
    NamedModels.of(MODELS, Path("seeds.npz")),
    Pair("g", "f.tflite", Path("g.tflite"), Path("seeds.npz")),
    Assumption(notes=("the output is a score",)),
)


@pytest.mark.parametrize(("kind", "doubted"), [(UserError, True), (OperatorMissing, False)])
def test_assumptions_are_doubted_where_no_runtime_refuses_the_file(
    kind: type[UserError], doubted: bool
) -> None:
    with pytest.raises(kind) as refused, LOADED.naming_next():
        raise kind("no output 'a'")
    assert ("--write-pair" in str(refused.value)) is doubted
