"""The file in the configuration folder that records what the user agreed to, by sha256."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from edgeflare.outside_text import json_value

SCHEMA = "edgeflare.trusted/v1"


def store_path() -> Path:
    """Return the path of the file, beside the user's own profiles."""
    return Path(os.path.expanduser("~/.config/edgeflare/trusted.json"))


def is_trusted(sha256: str) -> bool:
    """Tell whether the user agreed to what has this sha256."""
    return sha256 in _read()


def kept_words() -> frozenset[str]:
    """Return the sentences that say what the user agreed to."""
    return frozenset(_read().values())


def keep(sha256: str, what: str) -> None:
    """Keep what the user agreed to, with a sentence that says what it was.

    Readers see the file before or after, never half of it; nobody else may read or write it.

    Raises:
        OSError: the file cannot be written.

    """
    path = store_path()
    document = {"schema": SCHEMA, "trusted": {**_read(), sha256: what}}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read() -> dict[str, str]:
    """Return what is kept; nothing where the file is absent or damaged."""
    try:
        document = json_value(store_path().read_bytes())
        known = document["schema"] == SCHEMA
        trusted = {str(sha256): str(what) for sha256, what in document["trusted"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return trusted if known else {}
