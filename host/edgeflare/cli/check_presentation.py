"""A check, as `edgeflare report` shows and writes it."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.cli.presentation import Reported
from edgeflare.pages.facts import in_words
from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.record.json_types import plain_json
from edgeflare.release.check_document import CheckDocument, load_check
from edgeflare.release.check_page import check_page
from edgeflare.release.gates import gates_csv
from edgeflare.run.run_directory import CHECK_DOCUMENT, RunDirectory


def reported_check(directory: RunDirectory) -> Reported:
    """Read a check."""
    document = load_check(directory.inside(CHECK_DOCUMENT))
    page = check_page(document)
    return Reported(
        lambda: plain_json(document),
        lambda console: print_page(console, page, str(directory.path)),
        {
            "--html": ("check.html", lambda: _page(document, directory)),
            "--csv": ("gates.csv", lambda: gates_csv(document.gates).encode()),
            "--summary": ("summary.md", lambda: markdown_page(page).encode()),
        },
        "a check",
        lambda: check_suite(document),
    )


def _page(document: CheckDocument, directory: RunDirectory) -> bytes:
    from edgeflare.release.check_html import check_html  # noqa: PLC0415 - takes time

    return check_html(document, directory.path).encode()


def check_suite(document: CheckDocument) -> Suite:
    """Return a check as cases.

    The first is the verdict, which fails unless the model may ship. A gate that is open or was not
    checked is skipped, and fails where each has to be decided.
    """
    verdict = None
    if not document.passes:
        verdict = JUnitFailure(document.sentence, document.verdict, document.next_step)
    return Suite(
        command="check",
        name=document.pair,
        known={
            "edgeflare": document.edgeflare,
            "verdict": document.verdict,
            "sentence": document.sentence,
            "next_step": document.next_step,
            "plan": document.plan,
            **{
                f"device {device.kernels.device.name}": device.kernels.device.provenance
                for device in document.figures.devices
            },
        },
        cases=[JUnitCase(name="verdict", failure=verdict), *_cases(document)],
        seconds=document.seconds,
    )


def _cases(document: CheckDocument) -> Iterator[JUnitCase]:
    for gate in document.gates:
        interval = "" if gate.seen is None else f": {gate.seen.in_words()}"
        said = [f"{gate.sentence}{interval}", f"limit {gate.limit:g}"]
        if gate.inputs_to_decide is not None:
            said.append(f"{gate.inputs_to_decide:,} inputs like these would decide it")
        name, seen = f"gate {gate.title}", "; ".join(said)
        undecided = gate.state in ("open", "not-checked")
        if gate.state == "fail" or (undecided and document.plan.strict):
            message = f"{in_words(gate.state)}: {gate.sentence}" if undecided else gate.sentence
            yield JUnitCase(name=name, failure=JUnitFailure(message, gate.name, seen))
        else:
            yield JUnitCase(
                name=name, skipped=f"{in_words(gate.state)}: {seen}" if undecided else ""
            )
