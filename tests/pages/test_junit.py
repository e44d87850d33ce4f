"""Cases as lines that GitHub shows beside a job."""

from __future__ import annotations

from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite, job_annotations


def suite_of(*cases: JUnitCase) -> Suite:
    return Suite(command="check", name="a, b", known={}, cases=cases, seconds=0.0)


def failed(name: str, message: str = "lost 5%") -> JUnitCase:
    return JUnitCase(name=name, failure=JUnitFailure(message, "gate", "in full"))


def test_what_failed_comes_before_what_was_skipped_and_what_passed_is_not_told() -> None:
    skipped = JUnitCase(name="open", skipped="too few")
    lines = list(job_annotations(suite_of(skipped, JUnitCase(name="fine"), failed("gate: x"))))
    assert lines == [
        "::error title=edgeflare check a%2C b%3A gate%3A x::lost 5%25",
        "::notice title=edgeflare check a%2C b%3A open::too few",
    ]


def test_a_strangers_text_begins_no_command_of_its_own() -> None:
    (line,) = job_annotations(suite_of(failed("x", "one\n::add-mask::two\r\x1b[31m")))
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line


def test_the_last_of_ten_says_how_many_more_there_are() -> None:
    lines = list(job_annotations(suite_of(*(failed(str(at)) for at in range(12)))))
    assert len(lines) == 10
    assert lines[-1] == "::error title=edgeflare check a%2C b::3 more cases like these"
    assert len(list(job_annotations(suite_of(*(failed(str(at)) for at in range(10)))))) == 10
