"""The device's answers with its own input and output stages, beside those with the pair's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices.device import Device
from edgeflare.diagnose.execution_modes import (
    OTHER_REPEATS,
    REPEATS,
    Vote,
    mode_of_session,
    repeated,
    votes,
)
from edgeflare.diagnose.output_stage import OutputStage
from edgeflare.models.invocation import Invocation

STAGE_VOTES = {
    "shipped": "device, its own stages",
    "pair_outputs": "device, the pair's output stage",
    "pair_inputs": "device, the pair's input stage",
}
"""How the votes of `StageVotes` are called, by their keys in explain.json."""


@dataclass(frozen=True, slots=True)
class StageVotes:
    """The device's answers to one input, with stages that are its own or the pair's.

    Attributes:
        shipped: both stages are the device's own, as in a search.
        pair_outputs: the same raw outputs, read as the pair's other arms read theirs.
        pair_inputs: the input encoded as for the pair's other arms, and read as the device does.
        device_queries: inputs that were sent to the device for it.

    """

    shipped: Vote
    pair_outputs: Vote
    pair_inputs: Vote
    device_queries: int

    def to_json(self, described: Callable[[Vote], dict[str, Any]]) -> dict[str, Any]:
        """Return plain JSON values; `described` returns those of a vote."""
        return {
            "shipped": described(self.shipped),
            "pair_outputs": described(self.pair_outputs),
            "pair_inputs": described(self.pair_inputs),
        }


def ask_with_stages(
    device: Device,
    path: Path,
    invocation: Invocation,
    own: tuple[NDArray[np.generic], OutputStage],
    pairs: tuple[NDArray[np.generic], OutputStage],
) -> list[StageVotes]:
    """Ask the device in its profile's mode about inputs, with each of its stages and the pair's.

    Args:
        device: the device.
        path: the compressed model.
        invocation: how it is called.
        own: the rows that the device's own input stage makes, and its own output stage.
        pairs: the same of the pair.

    Returns:
        The votes for each input.

    Raises:
        UserError: the device refuses the model.
        InfrastructureError: it was lost.

    """
    own_rows, own_stage = own
    pair_rows, pair_stage = pairs
    with closing(device.open(path, invocation)) as session:
        mode = mode_of_session(device.profile, session)
        signature = session.signature
        raw = repeated(session, own_rows, REPEATS)
        asked = REPEATS
        other_rows, other_raw = own_rows, raw
        if not np.array_equal(own_rows, pair_rows):
            other_rows, other_raw = pair_rows, repeated(session, pair_rows, OTHER_REPEATS)
            asked += OTHER_REPEATS
    table = zip(
        votes(mode, own_stage, signature, own_rows, raw),
        votes(mode, pair_stage, signature, own_rows, raw),
        votes(mode, own_stage, signature, other_rows, other_raw),
        strict=True,
    )
    return [StageVotes(*row, device_queries=asked) for row in table]
