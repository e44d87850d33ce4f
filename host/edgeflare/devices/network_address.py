"""Network addresses as users write them."""

from __future__ import annotations


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; an IPv6 host stands in brackets.

    Raises:
        ValueError: it is no such address; the message says what is expected.

    """
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    usable = bool(host) and (bracketed or not set(host) & set(":/ "))
    if not usable or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError("expected HOST:PORT")
    return host.strip("[]"), int(port)
