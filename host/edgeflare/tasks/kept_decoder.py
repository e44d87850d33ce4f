"""A decoder as the journal of a run keeps it."""

from __future__ import annotations

import msgspec

from edgeflare.core.task import Decoder, Task
from edgeflare.record.json_types import JsonValue, plain_json


class KeptDecoder(msgspec.Struct, frozen=True):
    """What a decoder is made of.

    Attributes:
        kind: the name of its type, one of `Task.decoders`.
        fields: its fields.

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
