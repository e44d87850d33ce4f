"""A folded file is taken where it gives the user's own outputs, and refused where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
import pytest

from edgeflare.campaign.folding_proof import with_folding_proven
from edgeflare.campaign.opened_pair import host_arm
from edgeflare.core.seed_choice import SeedChoice
from edgeflare.models.folded_pair import with_shapes_folded
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite import open_tflite
from tampering import COMPRESSED, constant_of, with_constant

Refusal = Callable[..., str]

pytestmark = pytest.mark.slow  # starts processes


def proven(pair: Pair) -> Pair:
    with closing(open_tflite(pair.executed, "builtin")) as model:
        name = str(pair.compressed)
        inputs = ModelInputs(pair.interface, model.signature.inputs, name)
        seeds = inputs.load(pair.seeds, SeedChoice(first=5))
        arm = host_arm(pair, name, model, inputs, seeds)
        return with_folding_proven(pair, arm, {"builtin": model}, seeds)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with with_shapes_folded(load_pair(COMPRESSED.parent, Settings(fold_shapes=True))) as opened:
        yield opened


def test_what_was_proven_is_kept(pair: Pair) -> None:
    folded = proven(pair).folded
    assert folded is not None
    assert (folded.equal_under, folded.inputs) == (("builtin",), 5)
    plain = load_pair(COMPRESSED.parent)
    assert proven(plain) is plain


def test_a_file_that_gives_other_outputs_is_refused(pair: Pair, refusal: Refusal) -> None:
    content = pair.executed.read_bytes()
    weights = constant_of(content, 0)
    pair.executed.write_bytes(with_constant(content, weights, np.zeros_like))
    said = refusal(proven, pair)
    assert "gives other outputs under the builtin kernels" in said
    assert "leave --fold-shapes out" in said
