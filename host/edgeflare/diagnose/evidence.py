"""What was seen of one finding: the table on which its verdict rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgeflare.core.arm import Arm
from edgeflare.models.tflite import Kernels

REPEATS = 3
"""Of the device as it is; once could be chance. Everything else is asked twice."""

MOST_DEVICE_QUERIES = 30
"""For one finding, votes and layers together; the layers get what the votes leave."""


@dataclass(frozen=True, slots=True)
class ExecutionMode:
    """A way of running the model.

    Attributes:
        arm: where it runs.
        kernels: the kernels that were asked for; None for an original that has no choice.
        threads: interpreter threads.
        delegated: nodes that a delegate took; None where it is not known.

    """

    arm: Arm
    kernels: Kernels | None = None
    threads: int = 1
    delegated: int | None = None

    @property
    def ran(self) -> Kernels | None:
        """The kernels that truly ran: a runtime may take no node although XNNPACK was wanted."""
        return "builtin" if self.kernels == "xnnpack" and self.delegated == 0 else self.kernels

    def __str__(self) -> str:
        if self.kernels is None:
            return self.arm.value
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        silent = " (nothing delegated)" if self.ran != self.kernels else ""
        return f"{self.arm.value}, {self.kernels}{silent}, {threads}"


@dataclass(frozen=True, slots=True)
class Vote:
    """What one way of running the model answered, each time that it was asked.

    Attributes:
        way: how it ran.
        labels: top-1 label each time; None where it failed.
        outputs: a checksum of the raw output each time.
        tied: whether the two largest raw outputs were equal, the first time.
        failure: why there was no answer, the first time; None where there was one.
        probabilities: of each class, the first time; empty where it failed.

    """

    way: ExecutionMode
    labels: tuple[int | None, ...]
    outputs: tuple[int, ...] = ()
    tied: bool = False
    failure: str | None = None
    probabilities: tuple[float, ...] = ()

    @property
    def label(self) -> int | None:
        """The label that it gave the first time."""
        return self.labels[0]

    @property
    def steady(self) -> bool:
        """Whether it answered the same each time, to the bit."""
        return len(set(self.labels)) <= 1 and len(set(self.outputs)) <= 1

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "arm": self.way.arm.value,
            "kernels": self.way.kernels,
            "threads": self.way.threads,
            "delegated_nodes": self.way.delegated,
            "labels": list(self.labels),
            "outputs_crc32": [f"{checksum:08x}" for checksum in self.outputs],
            "tied": self.tied,
            "failure": self.failure,
            "probabilities": [round(p, 9) for p in self.probabilities],
        }


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How two arms disagree on the seeds.

    Attributes:
        rate: share of the seeds on which their labels differ.
        classes: share of the classes, by the first arm's labels, of which a seed is among them.
        varied: whether the second arm tells the seeds apart: no label has nearly all of them.
        distance: mean over the seeds of the total variation between their probabilities, 0 to 1.
        explained: how the second arm's input would have to be read for the two to agree; None
            where no way was found, or none was sought.

    """

    rate: float
    classes: float
    varied: bool
    distance: float = 0.0
    explained: str | None = None

    @property
    def large(self) -> bool:
        """Whether most seeds of nearly all classes are read differently."""
        return self.rate >= LARGE and self.classes >= UNIFORM and self.varied

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "rate": self.rate,
            "classes": self.classes,
            "varied": self.varied,
            "distance": round(self.distance, 9),
            "explained": self.explained,
        }


LARGE = 0.3
"""Compression costs a few seeds in a hundred; wrong input costs most of them."""

UNIFORM = 0.75
"""Wrong input spares no class; a fault in a layer often does."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a finding.

    Attributes:
        original: the original's answers; None where there is no original.
        twin: the twin's, as the run had it.
        host: the twin under all the host's ways of running it, that of `twin` among them.
        device: the device's, as it is.
        others: the device under other kernels and threads.
        recorded: labels of the device when the run verified the finding; empty where that was
            another device.
        same_runtime: whether host and device have the same runtime in the same version.
        same_machine: whether they are of one architecture.
        seeds: how arms disagree on the seeds: "original-twin", "twin-device".
        compression_in_layer: whether a layer parts from the original's by more than quantization
            explains; None where the layers were not seen.
        kernel_in_layer: whether an operator by itself answers otherwise on the device; likewise.
        classes: names of the classes; empty where there are none.

    """

    original: Vote | None
    twin: Vote
    host: tuple[Vote, ...]
    device: Vote
    others: tuple[Vote, ...] = ()
    recorded: tuple[int | None, ...] = ()
    same_runtime: bool = True
    same_machine: bool = True
    seeds: Mapping[str, Disagreement] = field(default_factory=dict)
    compression_in_layer: bool | None = None
    kernel_in_layer: bool | None = None
    classes: tuple[str, ...] = ()

    def named(self, label: int | None) -> str:
        """Return the name of a class, or its number where it has none."""
        if label is None:
            return "nothing"
        return self.classes[label] if label < len(self.classes) else str(label)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        votes = [self.original, *self.host, self.device, *self.others]
        return {
            "votes": [vote.to_json() for vote in votes if vote is not None],
            "recorded": list(self.recorded),
            "same_runtime": self.same_runtime,
            "same_machine": self.same_machine,
            "seeds": {name: found.to_json() for name, found in self.seeds.items()},
        }
