"""The user's decision on what a document asks for, as a value that is passed to where it acts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from edgeflare.errors import UserError
from edgeflare.trust.request import Request
from edgeflare.trust.trust_store import is_trusted, keep


@dataclass(frozen=True, slots=True)
class Trust:
    """What the user has agreed to, or is asked about.

    Attributes:
        answer: the user's answer to a request that was not agreed to before.
        keeps: whether a yes holds for later commands too, as long as the contents stay the same.

    """

    answer: Callable[[Request], bool]
    keeps: bool = False

    def allows(self, request: Request) -> bool:
        """Tell whether the user has agreed, now or before."""
        if request.complete and is_trusted(request.sha256):
            return True
        if not self.answer(request):
            return False
        if self.keeps and request.complete:
            with suppress(OSError):  # a home that cannot be written to: it is asked again
                keep(request.sha256, request.what)
        return True

    def require(self, request: Request) -> None:
        """Refuse what the user has not agreed to.

        Raises:
            UserError: the user has not; names the option.

        """
        if not self.allows(request):
            raise UserError(
                f"{request.what}, which needs your trust: read the file, then add --trust "
                "(in Python and pytest, trust=True)"
            )


KEPT_ONLY = Trust(lambda _request: False)
"""Allows what the user agreed to before, and nothing else."""


def granted(trust: bool) -> Trust:
    """Return the decision of a caller in Python: yes to all for this call, or what is kept."""
    return Trust(lambda _request: True) if trust else KEPT_ONLY
