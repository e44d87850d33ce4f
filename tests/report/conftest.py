from __future__ import annotations

from copy import deepcopy

import pytest

from documents import Document
from recorded_run import Run, run

__all__ = ["document", "run"]


@pytest.fixture
def document(run: Run) -> Document:
    """The run's document, for the test to change."""
    return deepcopy(run.document)
