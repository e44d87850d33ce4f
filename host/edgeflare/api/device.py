"""A device opened from Python: `edgeflare.open_device`."""

from __future__ import annotations

from edgeflare.api.call_arguments import name_of, naming_arguments
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import granted


@naming_arguments
def open_device(name: str = "emulated-builtin", *, trust: bool = False) -> Device:
    """Open a device, for `with edgeflare.open_device("pixel") as device`; it is closed in the end.

    `device.provenance` says what it is, `device.open(path)` runs a `.tflite` file on it.

    Args:
        name: name of a device, as for `--device`.
        trust: trust its profile in `./device_profiles`.

    Raises:
        UserError: there is no such device, or it needs the user's trust.
        InfrastructureError: the device does not come up.

    """
    return connect(find_profile(name_of("name", name), granted(trust)))
