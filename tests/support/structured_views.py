"""Views of texts, objects and masks for tests, as `run.json` has them."""

from __future__ import annotations

from typing import Any

from documents import run_document
from edgeflare.run.run_document import RunDocument

View = dict[str, Any]

TEXTS: View = {
    "form": "transcript", "head": "", "separator": " ",
    "words": {
        "original": ["one", "two", "three"],
        "twin": ["one", "two", "three"],
        "device": ["one", "four", "three", "five"],
    },
}  # fmt: skip
FACE: View = {"box": [0.1, 0.2, 0.5, 0.6], "label": 0, "object": 0, "difference": "", "there": {}}
OBJECTS: View = {
    "form": "detection", "head": "", "classes": ["face", "dog"], "threshold": 0.5, "overlap": 0.5,
    "boxes": {
        "original": [
            {**FACE, "score": 0.93},
            {"box": [0.6, 0.6, 0.9, 0.9], "score": 0.51, "label": 0, "object": 1,
             "difference": "object-vanished", "there": {"twin": 0.0, "device": 0.31}},
        ],
        "twin": [{**FACE, "score": 0.92}],
        "device": [{**FACE, "score": 0.81}],
    },
}  # fmt: skip
MASKS: View = {
    "form": "segmentation", "head": "", "classes": ["background", "person"], "rows": 4,
    "columns": 4,
    "masks": {"original": "0 8 1 8", "twin": "0 8 1 8", "device": "0 12 1 4"},
    "mean_iou": 0.5833, "least_iou": 0.9, "region": 4, "least_region": 3,
}  # fmt: skip

KINDS = {"transcript": "word-substituted", "detection": "object-vanished",
         "segmentation": "low-mean-iou"}  # fmt: skip
VIEWS = {"transcript": TEXTS, "detection": OBJECTS, "segmentation": MASKS}


def structured_finding(task: str, view: View | None = None, **fields: Any) -> dict[str, Any]:
    """Return the fields of a finding with answers of such a task."""
    labels = {"original": 0, "twin": 0, "device": 1}
    return {
        "labels": labels, "probabilities": dict.fromkeys(labels, ()), "strength": 0.25,
        "cause": "kernel", "kind": KINDS[task], "tied": dict.fromkeys(labels, False),
        "answers": [view or VIEWS[task]], **fields,
    }  # fmt: skip


def structured_run(task: str, *findings: dict[str, Any], **fields: Any) -> RunDocument:
    """Return a run of a task with these findings, or with one."""
    return run_document(
        pair={"task": task}, findings=findings or [structured_finding(task)], **fields
    )
