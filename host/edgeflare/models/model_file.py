"""Files of models, which are read where they are regular ones, and no larger than models are.

Models that are made of the user's lie in temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.errors import EdgeFlareError, UserError, path_suggestion
from edgeflare.regular_file import read_regular

_MOST_BYTES: Final = 2**32
"""Most bytes of a model's file: a flatbuffer has half of it at most, and its constants may lie
behind it."""


def read_model_file(path: Path) -> bytes:
    """Return the content of a model file.

    Raises:
        OSError: it cannot be read.

    """
    check_model_file(path)
    return read_regular(path, _MOST_BYTES)


def check_model_file(path: Path) -> None:
    """Refuse a model file that is not there, has nothing in it, or more than is read.

    Raises:
        UserError: there is no such file, it is a folder, it is empty, or larger than models are.

    """
    if not path.exists():
        raise UserError(
            f"there is no model file {path}{path_suggestion(path, Path.is_file)}: check the path"
        )
    if not path.is_file():
        raise UserError(f"{path} is not a model file: give the path of a file")
    size = path.stat().st_size
    if not size:
        raise UserError(f"the model file {path} is empty: copy or convert it again")
    if size > _MOST_BYTES:
        raise UserError(
            f"the model file {path} has {size:,} bytes, and at most {_MOST_BYTES:,} are read: give"
            " a smaller one"
        )


@contextmanager
def temporary_model(content: bytes, stem: str, called: str) -> Iterator[Path]:
    """Keep a model in a temporary folder.

    An error that passes through here says `called` where it names the file, which is gone when the
    user reads of it.

    Args:
        content: the `.tflite` file.
        stem: name of the file without the ending.
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
