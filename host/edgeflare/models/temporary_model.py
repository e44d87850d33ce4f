"""A model that was made from the user's, in a file of its own for as long as it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.errors import EdgeFlareError


@contextmanager
def temporary_model(content: bytes, stem: str, called: str) -> Iterator[Path]:
    """Keep a model in a temporary folder.

    An error that passes through here says `called` where it names the file, which is gone when the
    user reads of it.

    Args:
        content: the `.tflite` file.
        stem: its name without the ending.
        called: what the user is told that it is, with the path of the user's own file.

    Yields:
        The path of the file.

    """
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        path = Path(folder) / f"{stem}.tflite"
        path.write_bytes(content)
        try:
            yield path
        except EdgeFlareError as error:
            error.args = (str(error).replace(str(path), called),)
            raise
