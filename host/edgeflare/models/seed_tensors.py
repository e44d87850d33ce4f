"""What the compressed model of a pair is given on some of its seeds."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from edgeflare.core.seeds import SeedChoice
from edgeflare.models.evaluator import Invocation
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_probe import Values
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import open_tflite


def seed_tensors(pair: Pair, count: int) -> Values | None:
    """Return what a model with one input is given on seeds, of each label its share.

    Args:
        pair: the pair.
        count: most seeds.

    Returns:
        (seeds, *input shape), as the model takes it; None of a model with several inputs, or one
        that is not called as a graph.

    Raises:
        UserError: the model cannot be opened, or the seeds do not fit.

    """
    interface = pair.interface
    if interface.invocation != Invocation() or len(interface.inputs) > 1:
        return None
    with closing(open_tflite(pair.compressed, "xnnpack")) as twin:
        tensors = twin.signature.inputs
        if len(tensors) > 1:
            return None
        inputs = ModelInputs(interface, tensors, str(pair.compressed))
        seeds = inputs.load(pair.seeds, SeedChoice(limit=count), pair.classes)
        encoder = inputs.encoder()
        rows = [encoder.encode(image[None]).reshape(tensors[0].shape) for image in seeds.inputs]
    return np.stack(rows)
