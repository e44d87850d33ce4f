"""What a call gives: a typed document, the folder that it lies in, a table, and a view of it."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from edgeflare.errors import UserError
from edgeflare.pages.page import Page

if TYPE_CHECKING:
    import pandas

_Document = TypeVar("_Document")


@dataclass(frozen=True, repr=False)
class Result(ABC, Generic[_Document]):
    """What a command gives that makes a folder; a notebook shows it as that command does.

    Attributes:
        document: the document of the folder, typed, such as `check.json`.
        path: the folder.

    """

    document: _Document
    path: Path

    @abstractmethod
    def page(self) -> Page:
        """Return what the command says of it."""

    @abstractmethod
    def csv(self) -> str:
        """Return its rows as comma-separated values with a header (RFC 4180)."""

    def to_dataframe(self) -> pandas.DataFrame:
        """Return its rows as a data frame, with the columns of `edgeflare report DIR --csv`.

        Raises:
            UserError: pandas is not installed.

        """
        try:
            import pandas as pd  # noqa: PLC0415 - whoever has no notebook does without
        except ImportError:
            raise UserError(
                "a data frame needs pandas, which is not installed: pip install pandas, or take"
                " the text that csv() returns"
            ) from None
        return pd.read_csv(io.StringIO(self.csv()), keep_default_na=False, na_values=[""])

    def __repr__(self) -> str:
        page = self.page()
        return f"<{page.kind} of {page.name}: {page.lead}; in {self.path}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from edgeflare.pages.html_page import html_fragment  # noqa: PLC0415 - takes time

        return html_fragment(self.page(), str(self.path))
