"""What a document asks for that takes the user's trust."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """Code that would run, or an address that would be reached, because a document says so.

    Attributes:
        what: what the document does, as the beginning of a sentence: "pair.toml names the Python
            function net.py:predict".
        contents: whatever decides what would happen, by a name each: the document, and the code.
        complete: whether that is all that decides it; only then is the user's answer kept.

    """

    what: str
    contents: Mapping[str, bytes]
    complete: bool = True

    @property
    def sha256(self) -> str:
        """What the answer is kept by, in hexadecimal: it changes with any of the contents."""
        digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in self.contents.items()
        }
        return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
