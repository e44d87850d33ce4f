from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from documents import Document
from edgeflare.pages.chart import Chart
from edgeflare.report.html.charts import charts_of
from edgeflare.report.html.explanation_view import ExplanationView
from edgeflare.report.html.run_html import run_html
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json

CLASSES = ("ankle boot", "<script>alert('bag')</script>", '"><img src="http://localhost/x">')
"""Names that a page must show as they are; the last two would act if it did not."""


@pytest.fixture(scope="session")
def directory(run: Any) -> RunDirectory:
    return RunDirectory(run.folder)


@pytest.fixture
def document(run: Any) -> Document:
    """The run's document, for the test to change; its classes have names."""
    copy: Document = deepcopy(run.document)
    copy["classes"] = list(CLASSES)
    return copy


@pytest.fixture(scope="session")
def page(run: Any, directory: RunDirectory) -> str:
    """The page of the run; its classes have names."""
    return run_html(from_json({**run.document, "classes": list(CLASSES)}), directory, {})


@pytest.fixture(scope="session")
def drawn(run: Any) -> tuple[Chart, ...]:
    """The charts of the run."""
    return charts_of(from_json(run.document))


@pytest.fixture
def rendered(
    document: Document,
    directory: RunDirectory,
    drawn: tuple[Chart, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., str]:
    """Render the document, perhaps changed, with explanations by seed id.

    The charts are those of the unchanged run: to draw them takes longer than all else.
    """
    monkeypatch.setattr("edgeflare.report.html.run_html.charts_of", lambda _: drawn)

    def render(explanations: dict[int, ExplanationView] | None = None, **changes: Any) -> str:
        return run_html(from_json({**document, **changes}), directory, explanations or {})

    return render
