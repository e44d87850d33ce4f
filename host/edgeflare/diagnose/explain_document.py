"""The explanations of a run: `explain.json`, schema `edgeflare.explain/v1`.

`explain.schema.json` beside this file describes it; docs/explain.md says what each figure means.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from edgeflare import __version__
from edgeflare.diagnose.explain_findings import Explanation
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes, load_json, packaged_schema
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader

SCHEMA: Final = "edgeflare.explain/v1"
EXPLANATIONS: Final = "explain.json"
"""Its name in the run directory."""

SAVE_SECONDS: Final = 10.0
"""Seconds between two writes of the file while findings are explained; a kill loses no more, unless
writing takes more than a tenth of that."""

Document = dict[str, Any]
"""The explanations as plain JSON values."""


def load_explanations(directory: RunDirectory, fingerprint: str) -> Document | None:
    """Return a run's explanations; None where there are none, or they belong to another pair.

    Args:
        directory: the run directory.
        fingerprint: that of the run's pair.

    Raises:
        UserError: the file is damaged, or of another schema.

    """
    if not (directory.path / EXPLANATIONS).exists():
        return None
    try:
        document = _read(directory.inside(EXPLANATIONS))
    except UserError as error:
        raise UserError(
            f"{error}; make it again with `edgeflare explain {directory.path}`"
        ) from None
    return document if document["pair"]["fingerprint"] == fingerprint else None


def _read(path: Path) -> Document:
    document = load_json(path, packaged_schema("edgeflare.diagnose", "explain.schema.json"))
    for key, entry in document["findings"].items():
        if entry["device"] not in document["devices"]:
            raise UserError(
                f"{path} is damaged: findings.{key}.device is {entry['device']!r}, but devices has"
                " none of this name"
            )
    return document


class Explanations:
    """The explanations of a run while they are made; earlier ones are kept.

    Attributes:
        pending: ids of the seeds whose findings are still to be explained.

    """

    def __init__(
        self,
        directory: RunDirectory,
        header: RunHeader,
        before: Document | None,
        pending: Sequence[int],
        device: str | None,
    ) -> None:
        """Begin, and list in the file which findings are to be explained.

        Args:
            directory: the run directory.
            header: the run's header.
            before: the earlier explanations, as `load_explanations` returns them.
            pending: ids of the seeds whose findings are still to be explained.
            device: the device that the user named; None for the run's own devices.

        """
        self.pending = list(pending)
        self._directory = directory
        self._header = header
        self._devices: dict[str, Any] = dict(before["devices"]) if before else {}
        self._findings: dict[str, Any] = dict(before["findings"]) if before else {}
        self._device = device
        self.save()

    def asked(self, device: str, provenance: Mapping[str, object]) -> None:
        """Record the provenance of a device that is asked from here on."""
        self._devices[device] = dict(provenance)

    def add(self, one: Explanation) -> None:
        """Add an explanation, which replaces an earlier one of the same finding."""
        seed_id = one.finding.seed_id
        self._findings[str(seed_id)] = one.to_json()
        if seed_id in self.pending:
            self.pending.remove(seed_id)
        if time.monotonic() - self._saved >= max(SAVE_SECONDS, 10 * self._save_took):
            self.save()

    def save(self) -> None:
        """Write the file."""
        begun = time.monotonic()
        named = {entry["device"] for entry in self._findings.values()}
        document: Document = {
            "schema": SCHEMA,
            "edgeflare": __version__,
            "pair": {key: self._header.pair[key] for key in ("name", "fingerprint")},
            "pending": {"device": self._device, "seed_ids": self.pending},
            "devices": {name: self._devices[name] for name in sorted(named)},
            "findings": {key: self._findings[key] for key in sorted(self._findings, key=int)},
        }
        write_atomically(self._directory.path / EXPLANATIONS, json_bytes(document))
        self._saved = time.monotonic()
        self._save_took = self._saved - begun


def left_over(before: Document | None, device: str | None) -> list[int]:
    """Return the ids of the seeds whose findings an interrupted `explain` left unexplained."""
    pending = (before or {}).get("pending") or {"device": None, "seed_ids": []}
    return list(pending["seed_ids"]) if pending["device"] == device else []
