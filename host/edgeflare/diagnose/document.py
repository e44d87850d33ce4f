"""The explanations of a run: `explain.json`, schema `edgeflare.explain/v1`.

`explain.schema.json` beside this file describes it; docs/explain.md says what each figure means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from edgeflare import __version__
from edgeflare.campaign.about import About
from edgeflare.campaign.run_directory import RunDirectory, write_atomically
from edgeflare.diagnose.explaining import Explanation

SCHEMA: Final = "edgeflare.explain/v1"
EXPLANATIONS: Final = "explain.json"
"""Its name in the run directory."""

Document = dict[str, Any]
"""The explanations as plain JSON values."""


def load_explanations(directory: RunDirectory, about: About) -> Document | None:
    """Return a run's explanations; None where there are none, or they are of another pair.

    A file that is damaged counts as none: it is made again by explaining again.
    """
    try:
        document = json.loads((directory.path / EXPLANATIONS).read_bytes())
        known = document["schema"] == SCHEMA
        same = document["pair"]["fingerprint"] == about.pair["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return document if known and same else None


def write_explanations(
    directory: RunDirectory,
    about: About,
    explanations: Sequence[Explanation],
    devices: Mapping[str, Mapping[str, object]],
) -> Document:
    """Write explanations into the run directory, beside those that are there, and return all.

    Args:
        directory: the run's.
        about: what run it is.
        explanations: the new ones; they replace older ones of the same findings.
        devices: provenance of the devices that were asked, by name.

    """
    before = load_explanations(directory, about) or {"devices": {}, "findings": {}}
    findings = before["findings"] | {
        str(one.finding["seed_id"]): one.to_json() for one in explanations
    }
    named = {entry["device"] for entry in findings.values()}
    known = before["devices"] | {name: dict(told) for name, told in devices.items()}
    document = {
        "schema": SCHEMA,
        "edgeflare": __version__,
        "pair": {"name": about.pair["name"], "fingerprint": about.pair["fingerprint"]},
        "devices": {name: known[name] for name in sorted(named)},
        "findings": {key: findings[key] for key in sorted(findings, key=int)},
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(directory.path / EXPLANATIONS, text.encode() + b"\n")
    return document
