"""The evidence on one finding, from which its verdict is derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder
from edgeflare.diagnose.compression_error import Grade
from edgeflare.diagnose.execution_modes import Vote
from edgeflare.diagnose.seed_disagreement import Disagreement
from edgeflare.diagnose.stage_votes import StageVotes

MOST_DEVICE_QUERIES = 30
"""Device queries for one finding, votes and layers together; layers get what the votes leave."""

LAYERS_QUERIES = 8
"""Device queries for layers: a bisection of 64 takes as many; votes on single keys leave these."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a verdict takes into account.

    Attributes:
        original: the original's answers; None where there is no original.
        twin: the twin's answers in the mode of the run.
        host: the twin's answers in all modes of the host, that of `twin` among them.
        device: the device's answers in its profile's mode; where it has stages of its own, those
            with the pair's, so that kernels are compared on equal inputs and decoding.
        others: the device's answers in other modes: kernels, threads, precision, fallback.
        recorded: labels of the device when the run verified the finding; empty where that was
            another device.
        same_runtime: whether host and device have the same runtime in the same version.
        same_machine: whether host and device have one architecture.
        seeds: how arms disagree on the seeds, by pair: "original-twin", "twin-device".
        compression_in_layer: whether the outputs of some layer differ from the original's by more
            than quantization explains, or a good one would make them; None where the layers could
            not be observed.
        compression_as: what of compression is to blame; None likewise.
        kernel_in_layer: whether some operator, given the same inputs, has other outputs on the
            device than on the twin; None where the layers could not be observed.
        classes: names of the classes; empty where there are none.
        decoder: describes answers; None where nothing but their labels is known.
        stages: the device's answers with its own stages; None where it has none of its own.

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
    compression_as: Grade | None = None
    kernel_in_layer: bool | None = None
    classes: tuple[str, ...] = ()
    decoder: Decoder | None = None
    stages: StageVotes | None = None

    @property
    def votes(self) -> tuple[Vote, ...]:
        """Those of all arms and modes, with the pair's stages."""
        every = (self.original, *self.host, self.device, *self.others)
        return tuple(vote for vote in every if vote is not None)

    @property
    def shipped(self) -> Vote:
        """The device's answers as it ships: with stages of its own, where it has some."""
        return self.device if self.stages is None else self.stages.shipped

    def named(self, label: int | None) -> str:
        """Return the name of a class, or its number where it has none; of no class, "something"."""
        if label is None:
            return "nothing"
        if self.device.is_of_values:
            return "something"
        if label < len(self.classes):
            return self.classes[label]
        return str(label) if self.decoder is None else self.decoder.describe(label)

    def said(self, vote: Vote) -> str:
        """Return what a mode answered, in a word or two."""
        if vote.is_of_values and vote.failure is None and self.answer_noun:
            noun = self.answer_noun
            arms = (("original", self.original), ("twin", self.twin), ("device", self.device))
            of_arms = (f"the {arm}'s {noun}" for arm, counted in arms if counted is vote)
            return next(of_arms, f"other {noun}" if noun.endswith("s") else f"another {noun}")
        if self.decoder is None or vote.answer is None:
            return self.named(vote.label)
        return self.decoder.describe_answer(vote.answer, self.classes)

    @property
    def answer_noun(self) -> str:
        """What an answer is called that is too large to be written out, as of `Decoder`."""
        return "values" if self.decoder is None else self.decoder.answer_noun

    def reference(self) -> tuple[str, Vote]:
        """Return the arm from which the distances of values are measured, and its answer."""
        return ("twin", self.twin) if self.original is None else ("original", self.original)

    def described(self, vote: Vote) -> str | None:
        """Return an answer in full, where a label says too little; None where it says it all."""
        if self.decoder is None or vote.answer is None or vote.failure is not None:
            return None
        if type(vote.answer) is Answer:
            return None
        text = self.decoder.describe_answer(vote.answer, self.classes)
        name, reference = self.reference()
        apart = None if vote is reference else vote.measured(reference)
        if apart is None or not self.answer_noun:
            return text
        return f"{text}; {vote.measured_as} to the {name}: {apart:.4g}"
