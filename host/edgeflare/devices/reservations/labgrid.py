"""Places of labgrid, acquired and released by its own client.

That client runs in an environment of its own, as a user would run it: its gRPC and protobuf are
newer than those that EdgeFlare is held to, and it finds the coordinator as the user has it set up.
"""

from __future__ import annotations

import subprocess
from typing import Final

from edgeflare.devices.reservations.reservation import Reservation
from edgeflare.errors import InfrastructureError, UserError

_PROGRAM: Final = "labgrid-client"
_SECONDS: Final = 60.0
"""Seconds for an answer of labgrid's coordinator, which takes a second or two."""

_NO_ANSWER: Final = f"no answer within {_SECONDS:.0f} s"


class LabgridReservation(Reservation):
    """A place of labgrid. The user's environment says where the coordinator is."""

    def reserve(self) -> bool:
        """Acquire the place; see `Reservation.reserve`."""
        try:
            said = self._refusal("acquire")
        except KeyboardInterrupt:
            self._refusal("release")
            raise
        if said is None:
            return True
        if said == _NO_ANSWER:
            self._refusal("release")  # it may yet have acquired it
        if said == f"You have already acquired place {self.place}.":
            return False
        if said == f"place pattern {self.place} matches nothing":
            raise UserError(
                f"labgrid has no place {self.place}: correct `reservation` in the profile;"
                f" `{_PROGRAM} places` lists them"
            )
        raise InfrastructureError(f"labgrid does not give {self.place}: {said}")

    def release(self) -> None:
        """Release the place; see `Reservation.release`."""
        if (said := self._refusal("release")) is not None:
            raise InfrastructureError(
                f"labgrid does not take {self.place} back: {said};"
                f" `{_PROGRAM} -p {self.place} release` tries again"
            )

    def _refusal(self, action: str) -> str | None:
        """Return why the client does not do something, in a line; None where it does."""
        try:
            process = subprocess.Popen(
                [_PROGRAM, "-p", self.place, action],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # which keeps Ctrl-C on a terminal from it
            )
        except FileNotFoundError:
            raise UserError(
                f"{_PROGRAM} is not on PATH: pip install labgrid, perhaps into an environment of"
                " its own"
            ) from None
        with process:
            try:
                said = _said(process)
            except subprocess.TimeoutExpired:
                process.kill()
                return _NO_ANSWER
        if process.returncode == 0:
            return None
        lines = [line for line in said.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {process.returncode}"
        return last.removeprefix(f"{_PROGRAM}: ").removeprefix("Error: ")


def _said(process: subprocess.Popen[str]) -> str:
    """Return what a client says until it ends; Ctrl-C waits for that, lest the client be killed."""
    try:
        return process.communicate(timeout=_SECONDS)[0]
    except KeyboardInterrupt:
        process.communicate(timeout=_SECONDS)
        raise
