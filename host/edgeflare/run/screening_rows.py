"""What identifies a screening: the answers of all arms to every seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from edgeflare.run.journal_rows import AnswerRow

SCREENING_KEY: Final = "screening"
"""The key of `about` under which the journal of a search of some seeds says whose answers to the
seeds it took."""


def screening_sha256(rows: Mapping[int, AnswerRow]) -> str:
    """Return the sha256 of the answers to the seeds, whatever the order and however long each took.

    Args:
        rows: what was answered to each seed, by id.

    """
    digest = hashlib.sha256()
    for seed_id in sorted(rows):
        row = rows[seed_id]
        blobs = (row.original, row.twin, row.device, row.members)
        sizes = [None if blob is None else len(blob) for blob in blobs]
        about = [seed_id, row.image_crc32, sizes, sorted(row.failures.items())]
        digest.update(json.dumps(about).encode())
        for blob in blobs:
            digest.update(blob or b"")
    return digest.hexdigest()
