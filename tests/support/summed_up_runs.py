"""What a bench or a ranking has in its folder, but for what two of them do not share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from run_content import run_content

_TIMED = frozenset({"latency_seconds", "seconds", "timed_runs"})


def summed_up_content(folder: Path) -> dict[str, Any]:
    """Return the documents and the runs of a folder, by their paths, without times."""
    documents = {
        path.name: _untimed(json.loads(path.read_bytes())) for path in folder.glob("*.json")
    }
    runs = {
        str(path.parent.relative_to(folder)): run_content(path.parent)
        for path in sorted(folder.glob("*/*/run.db"))
    }
    return {**documents, **runs}


def _untimed(said: Any) -> Any:
    if isinstance(said, list):
        return [_untimed(one) for one in said]
    if isinstance(said, dict):
        return {
            key: _untimed(value)
            for key, value in said.items()
            if key not in _TIMED and not key.endswith("_seconds")
        }
    return said
