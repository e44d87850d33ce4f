"""What run this is: the part of a journal that is known before the first query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgeflare.core.arm import Arm
from edgeflare.core.domain import Domain
from edgeflare.core.output_decoders import OutputDecoders
from edgeflare.core.task import Decoder
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.run.run_domain import run_domain
from edgeflare.run.seed_ids import SeedIds
from edgeflare.tasks.task_registry import TASKS


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a run is.

    Attributes:
        version: version of edgeflare that began it.
        pair: the pair: name, fingerprint, paths and preprocessing, as plain JSON values.
        plan: what was asked.
        devices: name and provenance of each device, as plain JSON values.
        arms: how each arm's raw outputs are read.
        classes: names of the classes; empty where not given.
        labels: the seeds' labels, or None.
        host: what ran the original and the twin, as plain JSON values; empty in older journals.
        names: the seeds' file names; empty where they lie in one file, and in older journals.
        all_seeds: how many seeds the pair has, up to the limit; None in older journals.

    """

    version: str
    pair: Mapping[str, Any]
    plan: Plan
    devices: tuple[Mapping[str, Any], ...]
    arms: Mapping[Arm, Decoder]
    classes: tuple[str, ...]
    labels: tuple[int, ...] | None
    host: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    all_seeds: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return this as plain JSON values."""
        return {
            "version": self.version,
            "pair": dict(self.pair),
            "plan": self.plan.to_json(),
            "devices": [dict(device) for device in self.devices],
            "arms": {arm.value: dict(decoder.to_json()) for arm, decoder in self.arms.items()},
            "classes": list(self.classes),
            "labels": None if self.labels is None else list(self.labels),
            "host": dict(self.host),
            "names": list(self.names),
            "all_seeds": self.all_seeds,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> RunHeader:
        """Return what `to_json` described.

        Raises:
            UserError: the journal that it was read from is damaged.

        """
        try:
            task = TASKS.find(fields["pair"].get("task", "classification"))
            return cls(
                version=fields["version"],
                pair=fields["pair"],
                plan=Plan.from_json(fields["plan"]),
                devices=tuple(fields["devices"]),
                arms={
                    Arm(name): task.decoder_from_json(arm) for name, arm in fields["arms"].items()
                },
                classes=tuple(fields["classes"]),
                labels=None if fields["labels"] is None else tuple(fields["labels"]),
                host=fields.get("host", {}),
                names=tuple(fields.get("names", ())),
                all_seeds=fields.get("all_seeds"),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"the run's journal run.db is damaged (what it says of the run: {error}): start"
                " anew with --overwrite"
            ) from None

    def seed_name(self, seed_id: int) -> str:
        """Return the file name of a seed, or its position where it has none of its own."""
        return self.names[seed_id] if seed_id < len(self.names) else str(seed_id)

    def seed_label(self, seed_id: int) -> int | None:
        """Return the label of a seed, where labels were given."""
        return None if self.labels is None else self.labels[seed_id]

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
    def seed_ids(self) -> SeedIds | None:
        """The ids of the seeds that are searched; None where the journal is older and has all."""
        if self.plan.seed_ids is not None or self.all_seeds is None:
            return self.plan.seed_ids
        return SeedIds.first(self.all_seeds)
