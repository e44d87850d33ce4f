"""What `edgeflare report` shows and writes, of a run of any kind or a repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.cli.console import Console
from edgeflare.errors import UserError
from edgeflare.pages.junit import Suite, junit_xml
from edgeflare.pages.page import Page


@dataclass(frozen=True, slots=True)
class Reported:
    """What is reported.

    Attributes:
        document: returns it as plain JSON values.
        show: prints it.
        files: name of a file, and what returns its content, by the switch that asks for it; without
            that of JUnit.
        what: it is, in words.
        suite: returns it as cases that pass or fail; None where it has none.

    """

    document: Callable[[], Any]
    show: Callable[[Console], None]
    files: Mapping[str, tuple[str, Callable[[], bytes]]]
    what: str
    suite: Callable[[], Suite] | None = None

    @property
    def writes(self) -> Mapping[str, tuple[str, Callable[[], bytes]]]:
        """The files, by the switch that asks for each, that of JUnit among them."""
        suite = self.suite
        if suite is None:
            return self.files
        first, *others = self.files.items()
        return dict([first, ("--junit", ("junit.xml", lambda: junit_xml(suite()))), *others])

    def cases(self, path: Path) -> Suite:
        """Return the cases, to be told of.

        Raises:
            UserError: there are none.

        """
        if self.suite is None:
            raise UserError(f"--annotations has nothing to tell of {self.what}, as {path} is")
        return self.suite()

    def require(self, switch: str, path: Path) -> None:
        """Refuse a switch that writes what there is none of here."""
        if switch not in self.writes:
            *first, last = self.writes
            instead = f"{', '.join(first)} or {last}"
            raise UserError(
                f"{switch} has nothing to write of {self.what}, as {path} is: say {instead}"
            )


def page_bytes(page: Page) -> bytes:
    """Return a page as an HTML file.

    Raises:
        UserError: the extra that it needs is not installed.

    """
    with extra_needed():
        from edgeflare.pages.html_page import html_page  # noqa: PLC0415 - needs an extra

        return html_page(page).encode()


@contextmanager
def extra_needed() -> Iterator[None]:
    """Say how to install what an import within it lacks."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"--html needs {error.name}, which is not installed: pip install 'edgeflare[report]'"
        ) from None
