"""What a run keeps of its pair, in its journal and its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from edgeflare.record.json_types import Count, CountFromOne, JsonValue, Sha256

DEFAULT_DOMAIN = "image"
"""The domain of inputs of which nothing is said."""

DEFAULT_TASK = "classification"
"""The task of pairs that say nothing of it."""


class InputDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One of several inputs of a pair's models, or one that a pair has a table for.

    Attributes:
        name: as the pair calls it.
        domain: name of its domain.
        settings: what the domain is constructed with.
        tensor: what the models call it; empty where that is its name.
        array: the name of its array in the seeds; empty where that is its name.
        search: whether the search may change it.

    """

    name: str
    domain: str
    settings: Mapping[str, JsonValue]
    tensor: str
    array: str
    search: bool


class InvocationDescription(msgspec.Struct, frozen=True, kw_only=True):
    """How the models are called on one input.

    Attributes:
        signature: name of the signature that is run; empty for the model's first graph.
        shapes: a fixed shape for each input with dynamic dimensions, by the input's name.
        state: the output that is handed to an input of the next frame, by the input's name.
        frames: steps of one clip, which is one input then; 0 where an input is no clip.

    """

    signature: str
    shapes: Mapping[str, tuple[CountFromOne, ...]]
    state: Mapping[str, str]
    frames: Count


class InterfaceDescription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the models of a pair take and give.

    Attributes:
        outputs: what the outputs of a classifier are, where the pair says so.
        task: name of the task; absent of a classifier of which no more than its outputs is said.
        task_settings: what the task is constructed with.
        preprocess: how the models' inputs are made of images; absent for other inputs.
        domain: name of the domain of the inputs that are searched; absent for images.
        domain_settings: what that domain is constructed with.
        inputs: absent where there is one, of which nothing more is said.
        invocation: how the models are called on one input; absent where that is once, in their own
            shapes.
        device: what the device has of its own before and behind the model, in the same keys; absent
            where that is as on the host.

    """

    outputs: str | None
    task: str | None = None
    task_settings: Mapping[str, JsonValue] | None = None
    preprocess: Mapping[str, JsonValue] | None = None
    domain: str = DEFAULT_DOMAIN
    domain_settings: Mapping[str, JsonValue] | None = None
    inputs: Annotated[tuple[InputDescription, ...], msgspec.Meta(min_length=1)] | None = None
    invocation: InvocationDescription | None = None
    device: InterfaceDescription | None = None

    @property
    def task_name(self) -> str:
        """The name of the task."""
        return self.task or DEFAULT_TASK


class FoldedShapes(msgspec.Struct, frozen=True, kw_only=True):
    """What was folded in the compressed model before twin and device ran it.

    Attributes:
        operators: the operators that constants replaced, in execution order.
        sha256: digest of the file that was run.
        equal_under: the host's kernel sets under which both files gave equal outputs, to the bit.
        inputs: the number of seeds on which they did.

    """

    operators: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    sha256: str
    equal_under: tuple[str, ...]
    inputs: Count


class Variable(msgspec.Struct, frozen=True):
    """A variable of a model.

    Attributes:
        name: name of its tensor, or of the resource.
        operator: name of the operator that writes it.
        operator_index: position of that operator in its graph.

    """

    name: str
    operator: str
    operator_index: Count


_Variables = Annotated[tuple[Variable, ...], msgspec.Meta(min_length=1)]


class KeptVariables(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The variables of a pair's models; those of a model that has none are absent."""

    original: _Variables | None = None
    compressed: _Variables | None = None


class ModelHashes(msgspec.Struct, frozen=True, kw_only=True):
    """The SHA-256 digests of a pair's model files; null for an original that has none."""

    original: Sha256 | None
    compressed: Sha256


class RunPair(InterfaceDescription, frozen=True, omit_defaults=True):
    """The pair: its files, what identifies it, and what its models take and give.

    Attributes:
        name: what reports call it.
        fingerprint: digest of models, seeds, and how they are read.
        original: path or Python callable of the original; null where only kernels are compared.
        compressed: path of the compressed model.
        seeds: path of the seeds.
        sha256: digests of the model files.
        folded_shapes: what was folded in the compressed model before twin and device ran it; absent
            where nothing was. The model itself is in sha256 and compressed.
        functions: digests of the files of the Python functions that make inputs or read outputs, in
            their order; absent where there are none.
        variables: what the models keep from one inference to the next, such as the states of a
            fused LSTM; absent where they keep nothing. All arms reset it before each input.

    """

    name: str
    fingerprint: str
    original: str | None
    compressed: str
    seeds: str
    sha256: ModelHashes
    folded_shapes: FoldedShapes | None = None
    functions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ()
    variables: KeptVariables | None = None
