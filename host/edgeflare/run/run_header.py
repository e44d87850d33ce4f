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

    def require_same(self, other: RunHeader, run: str) -> None:
        """Refuse to go on with a run that is about something else.

        Raises:
            UserError: the pair, its folding, the plan or the kernels differ; names the first
                difference.

        """
        if self.pair["fingerprint"] != other.pair["fingerprint"]:
            raise UserError(
                f"{run} belongs to another pair ({self.pair['name']}, or other files or "
                "preprocessing): resume it with that pair, or name another folder with --out"
            )
        self._require_same_folding(other, run)
        if self.plan.goal.min_strength != other.plan.goal.min_strength:
            raise UserError(
                f"{run} was begun by an older edgeflare, whose search went on past findings weaker "
                "than --min-strength: start a new run"
            )
        now = _flat(other.plan.to_json())
        for key, value in _flat(self.plan.to_json()).items():
            if now[key] != value:
                option = "--" + key.replace("_", "-")
                raise UserError(
                    f"{run} was begun with {option} {value}, not {now[key]}: repeat the "
                    "command that began it, with --resume"
                )
        for mine, theirs in zip(self.devices, other.devices, strict=True):
            before, today = mine["provenance"], theirs["provenance"]
            for key in filter(before.__contains__, DECIDES_ANSWERS):
                if before[key] != today.get(key):
                    raise UserError(
                        f"{run} was begun on a device with {key} {before[key]}, but "
                        f"{mine['name']} now has {today.get(key)}: start a new run"
                    )

    def _require_same_folding(self, other: RunHeader, run: str) -> None:
        before, now = (one.pair.get("folded_shapes") for one in (self, other))
        if (before is None) != (now is None):
            said = ("with", "without") if before else ("without", "with")
            raise UserError(
                f"{run} was begun {said[0]} --fold-shapes, not {said[1]}: repeat the command that"
                " began it, with --resume"
            )
        if before and now and before["sha256"] != now["sha256"]:
            raise UserError(
                f"{run} was begun by an edgeflare that folds the model's shapes otherwise: start a"
                " new run"
            )


DECIDES_ANSWERS = (
    *("machine", "soc", "runtime", "runtime_version", "kernels", "threads"),
    *("delegate", "delegated_nodes", "adapter", "precision", "fallback"),
)
"""What of a device's provenance decides its answers; the last are not in all older journals."""


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's fields under the names of the options that set them."""
    set_ = plan.get("parameters", {})
    fields = {
        **plan["goal"],
        **plan,
        "device": ", ".join(plan["devices"]),
        "ensemble": ",".join((*plan["ensemble"], *plan.get("elsewhere", ()))),
        "operators": ",".join(plan["operators"]),
        "coverage": ",".join(f"{one:g}" for one in plan.get("coverage", ())) or None,
        "set": " --set ".join(f"{name}={value}" for name, value in sorted(set_.items())) or None,
    }
    for gathered in ("goal", "devices", "elsewhere", "parameters"):
        fields.pop(gathered, None)
    return {
        **{key: "none" if value is None else value for key, value in fields.items()},
        "ties": "include" if fields["ties"] else "exclude",
    }
