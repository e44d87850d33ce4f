"""Places of labgrid, acquired and released by its own client.

That client runs in an environment of its own, as a user would run it: its gRPC and protobuf are
newer than those that EdgeFlare is held to, and it finds the coordinator as the user has it set up.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
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
        answer = self._asked("acquire")
        said = answer.refusal
        if said == _NO_ANSWER or (answer.stop and said is None):
            self._asked("release")  # in the first case it may yet have acquired it
        if answer.stop is not None:
            raise answer.stop
        if said is None:
            return True
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
        answer = self._asked("release")
        if answer.stop is not None:
            raise answer.stop
        if answer.refusal is not None:
            raise InfrastructureError(
                f"labgrid does not take {self.place} back: {answer.refusal};"
                f" `{_PROGRAM} -p {self.place} release` tries again"
            )

    def _asked(self, action: str) -> _Answer:
        """Have the client do something, and wait for its end."""
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
        stop: KeyboardInterrupt | None = None
        with process:
            try:
                try:
                    said = process.communicate(timeout=_SECONDS)[0]
                except KeyboardInterrupt as error:  # killed, it may have acquired the place
                    stop = error
                    said = process.communicate(timeout=_SECONDS)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                return _Answer(_NO_ANSWER, stop)
        if process.returncode == 0:
            return _Answer(None, stop)
        lines = [line for line in said.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {process.returncode}"
        return _Answer(last.removeprefix(f"{_PROGRAM}: ").removeprefix("Error: "), stop)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the client came to.

    Attributes:
        refusal: why it did not do something, in a line; None where it did.
        stop: Ctrl-C that came meanwhile; None for none.

    """

    refusal: str | None
    stop: KeyboardInterrupt | None
