"""What run this is: the part of a journal that is known before the first query.

By it two runs are compared whose answers are to be one run's, and refused where they differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from edgeflare.core.domain import Domain
from edgeflare.core.query import Arm
from edgeflare.core.raw_output_rows import OutputDecoders
from edgeflare.core.task import Decoder, Task
from edgeflare.core.truths import KeptTargets, Truths
from edgeflare.devices.provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    OPENED_MODEL_DECIDES,
    decisive_changes,
)
from edgeflare.domains.domain_registry import find_domain
from edgeflare.errors import UserError
from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import FoldedShapes, RunPair
from edgeflare.record import request
from edgeflare.record.json_types import JsonValue, plain_json
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDevice, to_json
from edgeflare.run.seed_ids import SeedIds
from edgeflare.tasks.task_registry import TASKS


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a run is.

    Attributes:
        version: version of edgeflare that began it.
        pair: the pair: its files, and what its models take and give.
        plan: what was asked.
        devices: the devices.
        arms: how each arm's raw outputs are read.
        classes: names of the classes; empty where not given.
        labels: the seeds' labels, in the order of `all_seeds`; or None.
        targets: the seeds' targets, in that order; or None.
        host: what ran the original and the twin.
        names: the seeds' names, in that order; empty where these are their ids, as in one file.
        all_seeds: the ids of the pair's seeds, as far as `--limit` and `--first` take them.

    """

    version: str
    pair: RunPair
    plan: Plan
    devices: tuple[RunDevice, ...]
    arms: Mapping[Arm, Decoder]
    classes: tuple[str, ...]
    labels: tuple[int, ...] | None
    host: RunHost
    all_seeds: SeedIds
    targets: KeptTargets | None = None
    names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return this as plain JSON values."""
        return {
            "version": self.version,
            "pair": to_json(self.pair),
            "plan": plain_json(self.plan),
            "devices": [to_json(device) for device in self.devices],
            "arms": {
                arm.value: to_json(KeptDecoder.of(decoder)) for arm, decoder in self.arms.items()
            },
            "classes": list(self.classes),
            "labels": None if self.labels is None else list(self.labels),
            "targets": None if self.targets is None else self.targets.to_json(),
            "host": to_json(self.host),
            "names": list(self.names),
            "all_seeds": str(self.all_seeds),
        }

    @classmethod
    def from_json(
        cls, fields: Mapping[str, object], journal: str = "the run's journal run.db"
    ) -> RunHeader:
        """Return what `to_json` described.

        Args:
            fields: what `to_json` returned, as a journal keeps it.
            journal: what the message calls it.

        Raises:
            UserError: the journal that it was read from is damaged.

        """
        try:
            noted = msgspec.convert(fields, _NotedRun)
            task = TASKS.find(noted.pair.task_name)
            header = cls(
                version=noted.version,
                pair=noted.pair,
                plan=Plan.from_json(noted.plan),
                devices=noted.devices,
                arms={arm: decoder.decoder(task) for arm, decoder in noted.arms.items()},
                classes=noted.classes,
                labels=noted.labels,
                targets=KeptTargets.from_json(noted.targets),
                host=noted.host,
                names=noted.names,
                all_seeds=SeedIds.read(noted.all_seeds) if noted.all_seeds else SeedIds(()),
            )
            said = {
                "names": header.names or None,
                "labels": header.labels,
                "targets": header.targets,
            }
            for what, values in said.items():
                if values is not None and len(values) != len(header.all_seeds):
                    raise ValueError(f"{len(values)} {what} of {len(header.all_seeds)} seeds")
            return header
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{journal} is damaged (what it says of the run: {error}): start anew with"
                " --overwrite"
            ) from None

    def seed_name(self, seed_id: int) -> str:
        """Return the file name of a seed, or its position where it has none of its own."""
        return self.names[self.place(seed_id)] if self.names else str(seed_id)

    def place(self, seed_id: int) -> int:
        """Return where a seed is among those that are taken, by its id.

        Raises:
            KeyError: it is none of them.

        """
        return self.all_seeds.place(seed_id)

    def seed_label(self, seed_id: int) -> int | None:
        """Return the label of a seed, where labels were given."""
        return None if self.labels is None else self.labels[self.place(seed_id)]

    @property
    def truths(self) -> Truths:
        """What is right for each seed."""
        return Truths(self.arms[Arm.TWIN], self.labels, self.targets, self.place)

    @property
    def domain(self) -> Domain:
        """The domain of the inputs that were searched.

        Raises:
            UserError: it is not installed here, or the run's journal is damaged.

        """
        return run_domain(self.pair)

    @property
    def reading(self) -> OutputDecoders:
        """How the raw outputs in the journal are read."""
        return OutputDecoders(self.arms, self.plan.members)

    @property
    def seed_ids(self) -> SeedIds:
        """The ids of the seeds that are searched."""
        return self.plan.seed_ids or self.all_seeds


class KeptDecoder(msgspec.Struct, frozen=True):
    """A decoder as the journal keeps it: what it is made of.

    Attributes:
        kind: the name of its type, one of `Task.decoders`.
        fields: the decoder's fields.

    """

    kind: str
    fields: dict[str, JsonValue]

    @classmethod
    def of(cls, decoder: Decoder) -> KeptDecoder:
        """Return what is kept of a decoder."""
        return cls(type(decoder).__name__, plain_json(decoder))

    def decoder(self, task: type[Task]) -> Decoder:
        """Return the decoder, which is of a task.

        Raises:
            KeyError: the task has no decoders of this kind.
            ValueError: a field is missing, or is of another type.

        """
        kinds = {kind.__name__: kind for kind in task.decoders}
        return msgspec.convert(self.fields, kinds[self.kind])


class _NotedRun(msgspec.Struct, kw_only=True):
    """What a journal says of its run, among other things."""

    version: str
    pair: RunPair
    plan: Mapping[str, Any]
    devices: Annotated[tuple[RunDevice, ...], msgspec.Meta(min_length=1)]
    arms: Mapping[Arm, KeptDecoder]
    classes: tuple[str, ...]
    labels: tuple[int, ...] | None
    host: RunHost
    names: tuple[str, ...]
    all_seeds: str
    targets: Any


def run_domain(pair: RunPair) -> Domain:
    """Return the domain of a run's inputs.

    Files alone do not say all of it: the bounds of an array are no part of its values.

    Args:
        pair: pair in the run's document or header.

    Raises:
        UserError: there is no such domain, or it does not take the settings that the run has.

    """
    return find_domain(pair.domain, pair.domain_settings or {}, "the run's domain")


@dataclass(frozen=True, slots=True)
class RunDifference:
    """What two runs differ in.

    Attributes:
        of: part of the runs that differs.
        name: name of the option, or of what is known of the device or the host.
        one: value in the one run; None for an option that was not given.
        other: value in the other.

    """

    of: Literal["command", "pair", "folding", "option", "device", "host"]
    name: str
    one: str | None
    other: str | None

    def in_words(self) -> tuple[str, str]:
        """Return both values as a message says them."""
        return self.one or "none", self.other or "none"


def differences(
    one: RunHeader, other: RunHeader, ignored: Collection[str] = ()
) -> Iterator[RunDifference]:
    """Yield what two runs differ in that decides their answers, what tells most of them first.

    Args:
        one: what the one run is.
        other: the other.
        ignored: names of options that may differ.

    """
    commands = made_by(one.plan.strategy), made_by(other.plan.strategy)
    if commands[0] != commands[1]:
        yield RunDifference("command", "command", *commands)
    if one.pair.fingerprint != other.pair.fingerprint:
        yield RunDifference("pair", "pair", one.pair.name, other.pair.name)
    yield from _of_folding(one.pair.folded_shapes, other.pair.folded_shapes)
    for name, was, now in request.differences(one.plan, other.plan, ignored):
        yield RunDifference("option", name, was or None, now or None)
    for mine, its in zip(one.devices, other.devices, strict=False):
        known = (mine.provenance, its.provenance)
        for change in decisive_changes(*known, (*DEVICE_DECIDES, *OPENED_MODEL_DECIDES)):
            yield RunDifference("device", change.name, change.one, change.other)
    for change in decisive_changes(one.host, other.host, HOST_DECIDES):
        yield RunDifference("host", change.name, change.one, change.other)


def made_by(strategy: str) -> str:
    """Return the command that makes runs whose plan names a strategy."""
    return strategy if strategy in ("survey", "replay") else "search"


def _of_folding(one: FoldedShapes | None, other: FoldedShapes | None) -> Iterator[RunDifference]:
    if (one is None) != (other is None):
        said = ("with", "without") if one else ("without", "with")
        yield RunDifference("folding", "--fold-shapes", *said)
    elif one and other and one.sha256 != other.sha256:
        yield RunDifference("folding", "folded model", one.sha256, other.sha256)


def require_same(
    begun: RunHeader,
    now: RunHeader,
    run: str,
    *,
    allow_other_host: bool = False,
) -> None:
    """Refuse to go on with a run that is about something else, or on another host.

    Args:
        begun: what run it is.
        now: what goes on with it.
        run: name of the run in messages.
        allow_other_host: whether the host may differ in what decides its answers.

    Raises:
        OtherHostError: the host differs.
        UserError: the pair, its folding, the plan or the kernels differ; names the first
            difference.

    """
    # Devices that are alike in what decides answers have a name each.
    ignored = {"--device"} if len(begun.devices) == len(now.devices) else set()
    for found in differences(begun, now, ignored):
        if found.of != "host":
            raise UserError(_refusal(found, begun, run))
        if not allow_other_host:
            raise OtherHostError(
                f"{run} was begun on another host, with {found.name} {found.one} there and"
                f" {found.other} here, which may change the answers of original and twin:"
                " start a new run"
            )


class OtherHostError(UserError):
    """A run is to be gone on with on a host that may answer differently from its first."""


def _refusal(found: RunDifference, begun: RunHeader, run: str) -> str:
    """Return why a run cannot be gone on with, and what can be done."""
    if found.of == "command":
        return (
            f"{run} holds a {found.one}, and no {found.other}: `edgeflare {found.one}` goes on with"
            " it; or name another folder with --out, and leave out --resume"
        )
    if found.of == "pair":
        return (
            f"{run} belongs to another pair ({begun.pair.name}, or other files or "
            "preprocessing): resume it with that pair, or name another folder with --out"
        )
    if found.of == "device" and found.name == "cpu_features":  # each side is what the other lacks
        return (
            f"{run} was begun on a device with other cpu_features, {found.one} there and"
            f" {found.other} on the one of now: start a new run"
        )
    if found.of == "device":
        return (
            f"{run} was begun on a device with {found.name} {found.one}, but the one of now has"
            f" {found.other}: start a new run"
        )
    if found.of == "folding" and found.name != "--fold-shapes":
        return (
            f"{run} was begun by an edgeflare that folds the model's shapes otherwise: start a"
            " new run"
        )
    if found.of == "folding":
        said = f"{found.one} {found.name}, not {found.other}"
    else:
        said = request.not_as_begun(found.name, found.one, found.other)
    return f"{run} was begun {said}: repeat the command that began it, with --resume"
