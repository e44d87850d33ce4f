from __future__ import annotations

import pytest

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification import ClassDecoder, Classification

TWO = ClassDecoder(Tensor("out", (1, 2), "float32"), "logits")
THREE = ClassDecoder(Tensor("out", (1, 3), "int8", 0.5, 0), "logits")


def test_models_of_as_many_classes_are_a_pair() -> None:
    Classification().require_pair(TWO, TWO, ())
    Classification().require_pair(None, THREE, ("a", "b", "c"))


def test_models_of_other_classes_and_too_few_names_are_refused() -> None:
    said = "the original tells 2 classes apart and the compressed model 3: they are no pair"
    with pytest.raises(UserError, match=said):
        Classification().require_pair(TWO, THREE, ())
    with pytest.raises(UserError, match="classes has 2 names, but the compressed model tells 3"):
        Classification().require_pair(None, THREE, ("a", "b"))
