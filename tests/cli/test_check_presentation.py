"""A check as cases of JUnit."""

from __future__ import annotations

import pytest
from msgspec import structs

from checked_figures import changes, decisions, document, field_figures, figures
from edgeflare.cli.check_presentation import check_suite
from edgeflare.pages.junit import JUnitCase
from edgeflare.release.check_document import CheckDocument


@pytest.fixture
def checked() -> CheckDocument:
    ruined = field_figures()
    return document(figures(decisions=decisions(changes=changes(2, harmed=2)), field=ruined))


def cases(found: CheckDocument) -> dict[str, JUnitCase]:
    every = check_suite(found).cases
    return {one.name.removeprefix("gate ").partition(" on ")[0]: one for one in every}


def test_gates_that_are_not_decided_are_skipped_with_the_reason(checked: CheckDocument) -> None:
    found = cases(checked)
    assert found["accuracy-drop"].skipped.startswith(
        "open: right on 90.0% as the original, on 90.0% here: 0.67% ("
    )
    assert "; limit 0.01; " in found["accuracy-drop"].skipped
    assert found["accuracy-drop"].skipped.endswith(" inputs like these would decide it")
    assert found["field-loss"].skipped.startswith("not checked: the original works in no cell")
    assert not any(one.failure for one in found.values())
    assert not found["faults"].skipped


def test_where_each_has_to_be_decided_they_fail(checked: CheckDocument) -> None:
    strict = structs.replace(checked, plan=structs.replace(checked.plan, strict=True))
    found = cases(strict)
    failed = [name for name, one in found.items() if one.failure]
    assert failed == ["accuracy-drop", "net-harm", "kernel-changes", "field-loss"]
    assert found["accuracy-drop"].failure is not None
    assert found["accuracy-drop"].failure.message.startswith("open: right on")
