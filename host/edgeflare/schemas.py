"""The JSON Schemas that are written from the types of documents, beside them: `make schemas`.

Other programs, and the readers of these documents, use the files; no command imports this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec

from edgeflare.check.check_document import CheckDocument
from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.diagnose.explain_document import ExplainDocument
from edgeflare.diagnose.inspect.inspect_document import InspectDocument
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.matrix.conform_matrix_document import ConformMatrixDocument, RetryMatrixDocument
from edgeflare.matrix.matrix_document import MatrixDocument
from edgeflare.rank.rank_document import RankDocument
from edgeflare.record.json_schema import schema_of
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.record.survey_document import SurveyDocument

_DOCUMENTS: tuple[tuple[str, str, tuple[type[msgspec.Struct], ...]], ...] = (
    ("edgeflare.check", "check", (CheckDocument,)),
    ("edgeflare.conform.record", "conform", (ConformDocument,)),
    ("edgeflare.diagnose", "explain", (ExplainDocument,)),
    ("edgeflare.diagnose.inspect", "inspect", (InspectDocument,)),
    ("edgeflare.diagnose.layers", "layers", (LayersDocument,)),
    ("edgeflare.fleet.record", "fleet", (FleetState,)),
    ("edgeflare.matrix", "matrix", (MatrixDocument, ConformMatrixDocument, RetryMatrixDocument)),
    ("edgeflare.rank", "rank", (RankDocument,)),
    ("edgeflare.repair", "repair", (RepairDocument,)),
    ("edgeflare.run", "run", (RunDocument,)),
    ("edgeflare.survey.record", "survey", (SurveyDocument,)),
)
"""The package of each document, its name, and its type, or those of its kinds."""


def schemas() -> Iterator[tuple[Path, str]]:
    """Yield the file of each schema, and what belongs into it."""
    for package, name, documents in _DOCUMENTS:
        path = Path(str(files(package) / f"{name}.schema.json"))
        yield path, json.dumps(schema_of(*documents), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them."""
    for path, text in schemas():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
