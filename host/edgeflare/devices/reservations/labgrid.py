"""Places of labgrid, acquired and released by its own client."""

from __future__ import annotations

import subprocess
from typing import Final

from edgeflare.devices.reservations.reservation import Reservation
from edgeflare.errors import InfrastructureError, UserError

_PROGRAM: Final = "labgrid-client"
_SECONDS: Final = 60.0
"""For an answer of labgrid's coordinator, which takes a second or two."""


class LabgridReservation(Reservation):
    """A place of labgrid. The user's environment says where the coordinator is."""

    def reserve(self) -> bool:
        """Acquire the place; see `Reservation.reserve`."""
        if (said := self._refusal("acquire")) is None:
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
        if (said := self._refusal("release")) is not None:
            raise InfrastructureError(
                f"labgrid does not take {self.place} back: {said};"
                f" `{_PROGRAM} -p {self.place} release` tries again"
            )

    def _refusal(self, action: str) -> str | None:
        """Return why the client does not do something, in a line; None where it does."""
        try:
            done = subprocess.run(
                [_PROGRAM, "-p", self.place, action],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
                start_new_session=True,  # so that Ctrl-C does not keep it from giving back
            )
        except FileNotFoundError:
            raise UserError(
                f"{_PROGRAM} is not on PATH: pip install labgrid, perhaps into an environment of"
                " its own"
            ) from None
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS:.0f} s"
        if done.returncode == 0:
            return None
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit code {done.returncode}"
        return last.removeprefix(f"{_PROGRAM}: ").removeprefix("Error: ")
