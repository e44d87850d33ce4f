"""The device's answers with its own input and output stages, beside those with the pair's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import GivenRows, RawBatch
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
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.pair_interface import PairInterface

AVote = TypeVar("AVote")
"""A vote, or what a document says of one."""


@dataclass(frozen=True, slots=True)
class ByStages(Generic[AVote]):
    """What a device gives with each choice of stages, its own or the pair's.

    Attributes:
        shipped: both stages are the device's own, as in a search.
        pair_outputs: the pair's output stage, on the same raw outputs.
        pair_inputs: the pair's input stage, and the device's output stage.
        pair_keys: the device's input stage with the pair's value of one key, by the key; of the
            keys that change what the model or the task is given, as far as the queries suffice.
            Empty where the input stage changes no decision.

    """

    shipped: AVote
    pair_outputs: AVote
    pair_inputs: AVote
    pair_keys: Mapping[str, AVote]

    def named(self) -> Iterator[tuple[str, AVote]]:
        """Yield each with what the device is called there."""
        yield "device, its own stages", self.shipped
        yield "device, the pair's output stage", self.pair_outputs
        yield "device, the pair's input stage", self.pair_inputs
        for key, vote in self.pair_keys.items():
            yield f"device, the pair's {key} alone", vote


@dataclass(frozen=True, slots=True)
class StageVotes(ByStages[Vote]):
    """The device's answers to one input, with stages that are its own or the pair's.

    Attributes:
        device_queries: inputs that were sent to the device for it.

    """

    device_queries: int

    def deciding_keys(self, equal: Vote) -> list[str]:
        """Return the keys of which the pair's value alone gives the answer of equal stages."""
        return [key for key, vote in self.pair_keys.items() if vote.agrees(equal)]


def rows_with_one_key(
    interface: PairInterface, given: Callable[[PairInterface], GivenRows]
) -> dict[str, GivenRows]:
    """Return what the device's input stage makes with the pair's value of one key.

    Args:
        interface: interface of the pair.
        given: returns what an input stage makes; refuses one that does not fit the model.

    Returns:
        By the key, with the input's name before it where it has one: of all keys of inputs in which
        device and pair differ, and that go with the device's other keys.

    """
    device = interface.on_device
    found: dict[str, GivenRows] = {}
    for at, (own, pairs) in enumerate(zip(device.inputs, interface.inputs, strict=True)):
        for key in dict.fromkeys((*own.settings, *pairs.settings)):
            if own.settings.get(key) == pairs.settings.get(key):
                continue
            settings = {**own.settings, key: pairs.settings.get(key)}
            if key not in pairs.settings:
                del settings[key]
            inputs = list(device.inputs)
            with suppress(UserError):  # it does not go with the others
                inputs[at] = replace(own, settings=settings)
                one = replace(device, inputs=tuple(inputs))
                found[f"{own.name}.{key}".lstrip(".")] = given(one)
    return found


def ask_with_stages(
    device: Device,
    path: Path,
    invocation: Invocation,
    own: tuple[GivenRows, OutputStage],
    pairs: tuple[GivenRows, OutputStage],
    single: Mapping[str, GivenRows],
    most: int,
) -> list[StageVotes]:
    """Ask the device in its profile's mode about inputs, with each of its stages and the pair's.

    Args:
        device: the device.
        path: the compressed model.
        invocation: how it is called.
        own: what the device's own input stage makes, and its own output stage.
        pairs: the same of the pair.
        single: what the device's own input stage makes with the pair's value of one key, by the
            key.
        most: device queries for each input; single keys that would need more are left out.

    Returns:
        The votes for each input.

    Raises:
        UserError: the device refuses the model.

    """
    own_rows, own_stage = own
    pair_rows, pair_stage = pairs
    with closing(device.open(path, invocation)) as session:
        mode = mode_of_session(device.profile, session)
        signature = session.signature
        raw = repeated(session, own_rows, REPEATS)
        pair_raw, asked = raw, REPEATS
        if not np.array_equal(own_rows.rows, pair_rows.rows):
            pair_raw = repeated(session, pair_rows, OTHER_REPEATS)
            asked += OTHER_REPEATS

        def read(given: GivenRows, batches: Sequence[RawBatch]) -> list[Vote]:
            return votes(mode, own_stage, signature, given, batches)

        shipped, pair_inputs = read(own_rows, raw), read(pair_rows, pair_raw)
        answers = []
        for at, row in enumerate(zip(shipped, pair_inputs, strict=True)):
            keys: dict[str, Vote] = {}
            added = 0
            if not row[0].agrees(row[1]):
                known = [(own_rows.rows[at], raw), (pair_rows.rows[at], pair_raw)]
                keys, added = _votes_on_keys(
                    {key: _given_at(rows, at) for key, rows in single.items()},
                    _given_at(own_rows, at),
                    [
                        (rows[None], [_at(batch, at) for batch in batches])
                        for rows, batches in known
                    ],
                    lambda given: repeated(session, given, OTHER_REPEATS),
                    read,
                    most - REPEATS - OTHER_REPEATS,
                )
            answers.append((keys, asked + added))
    pair_outputs = votes(mode, pair_stage, signature, own_rows, raw)
    return [
        StageVotes(*row, keys, queries)
        for row, (keys, queries) in zip(
            zip(shipped, pair_outputs, pair_inputs, strict=True), answers, strict=True
        )
    ]


def _votes_on_keys(
    single: Mapping[str, GivenRows],
    own: GivenRows,
    answered: list[tuple[NDArray[np.generic], Sequence[RawBatch]]],
    ask: Callable[[GivenRows], Sequence[RawBatch]],
    read: Callable[[GivenRows, Sequence[RawBatch]], list[Vote]],
    most: int,
) -> tuple[dict[str, Vote], int]:
    """Return the votes on one input with single keys of the pair's, and the queries that it took.

    Args:
        single: what is made of it, by the key.
        own: what the device's own stage makes of it.
        answered: what the model was given, and its raw outputs; what is asked is added to it.
        ask: asks the device.
        read: reads votes from raw outputs; the task may read more than the model is given.
        most: queries; keys that would need more are left out.

    """
    found: dict[str, Vote] = {}
    queries = 0
    for key, given in single.items():
        if _equal(given, own):
            continue
        known = next((raw for rows, raw in answered if np.array_equal(rows, given.rows)), None)
        if known is None:
            if queries + OTHER_REPEATS > most:
                continue
            known = ask(given)
            answered.append((given.rows, known))
            queries += OTHER_REPEATS
        (found[key],) = read(given, known)
    return found, queries


def _given_at(given: GivenRows, at: int) -> GivenRows:
    """Return what is given for one of the inputs."""
    features = None if given.features is None else given.features[at : at + 1]
    return GivenRows(given.rows[at : at + 1], features)


def _at(batch: RawBatch, at: int) -> RawBatch:
    """Return the raw outputs on one of the inputs."""
    failures, details = ({0: of[at]} if at in of else {} for of in (batch.failures, batch.details))
    return RawBatch(batch.outputs[at : at + 1], failures, batch.busy_seconds, details)


def _equal(one: GivenRows, other: GivenRows) -> bool:
    """Whether two stages make the same for the model, and for the task that reads features."""
    pairs = ((one.rows, other.rows), (one.features, other.features))
    return all(
        a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs
    )
