"""Files of models, which are read where they are regular ones, and no larger than models are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular
from edgeflare.suggestion import path_suggestion

_MOST_BYTES: Final = 2**32
"""Of a model's file: a flatbuffer has half of it at most, and its constants may lie behind it."""


def read_model_file(path: Path) -> bytes:
    """Return the content of a model file.

    Raises:
        UserError: see `check_model_file`.
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
