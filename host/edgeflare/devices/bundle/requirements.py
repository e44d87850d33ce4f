"""Which packages a bundle holds, and in which versions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from edgeflare.errors import UserError

# Those of constraints.txt. Pinned, since a bundle made anew is to be the bundle that was tested.
_AGENT = {
    "grpcio": "1.76.0",
    "grpcio-health-checking": "1.76.0",
    "protobuf": "6.33.6",
    "typing-extensions": "4.16.0",
}
_NUMPY = "2.3.5"
_NUMPY_FOR_PYTHON_3_10 = "2.2.6"

# tflite-runtime is built for numpy 1.
_NUMPY_1 = "1.26.4"
_LAST_TFLITE_RUNTIME = "2.14.0"
_LAST_PYTHON_FOR_TFLITE_RUNTIME = (3, 11)

_LITERT = "ai-edge-litert"
_TFLITE_RUNTIME = "tflite-runtime"

# Where this host has no LiteRT that the device could be made equal to.
_USUAL_LITERT = "2.3.0"


def pin_runtime(runtime: str) -> str:
    """Return a runtime as pip takes it, "ai-edge-litert==2.3.0" for "litert".

    Without a version it is the host's own, so that twin and device run the same one; of
    tflite-runtime it is the last.

    Args:
        runtime: "litert" or "tflite-runtime", perhaps with "==VERSION".

    Raises:
        UserError: it is something else.

    """
    name, pinned, wanted = runtime.partition("==")
    if bool(pinned) == bool(wanted):
        if name in {"litert", _LITERT}:
            return f"{_LITERT}=={wanted or _installed(_LITERT, _USUAL_LITERT)}"
        if name == _TFLITE_RUNTIME:
            return f"{_TFLITE_RUNTIME}=={wanted or _LAST_TFLITE_RUNTIME}"
    raise UserError(
        f'unknown runtime "{runtime}"; expected litert or tflite-runtime, perhaps with ==VERSION'
    )


def requirements(runtime: str, python: tuple[int, int]) -> list[str]:
    """Return everything that goes into a bundle, every version pinned.

    Args:
        runtime: as `pin_runtime` returns it.
        python: version of the bundle's Python.

    Raises:
        UserError: there is no such runtime for that Python.

    """
    if runtime.startswith(_TFLITE_RUNTIME):
        if python > _LAST_PYTHON_FOR_TFLITE_RUNTIME:
            raise UserError(
                f"{runtime} needs Python 3.11 or less, and the Debian of this machine's apt"
                f" sources has {python[0]}.{python[1]}; make this bundle in a container of"
                " Debian 12 and copy the file"
            )
        numpy = _NUMPY_1
    else:
        numpy = _NUMPY if python > (3, 10) else _NUMPY_FOR_PYTHON_3_10
    pins = {**_AGENT, "numpy": numpy}
    return [runtime, *(f"{name}=={pin}" for name, pin in sorted(pins.items()))]


def _installed(package: str, otherwise: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise
