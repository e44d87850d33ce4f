"""The files that a model carries behind its graph, such as its labels.

TFLite Metadata has them there as a ZIP archive, stored without being packed.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Final

NO_ARCHIVE: Final = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
    *(OSError, EOFError, ValueError),
)
"""Errors of an archive behind a model that is none, is damaged, or is written in another way."""


def with_associated_files(content: bytes, source: bytes) -> bytes:
    """Return a model with the files that another one carries; one that carries none as it is.

    Args:
        content: a `.tflite` file without such files.
        source: the `.tflite` file that it was made from.

    """
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as packed:
            members = packed.infolist()
            if sum(member.file_size for member in members) > len(source):  # they are not packed
                return content
            files = [(member.filename, packed.read(member)) for member in members]
    except NO_ARCHIVE:
        return content
    if not files:
        return content
    made = io.BytesIO()
    made.write(content)
    with zipfile.ZipFile(made, "a") as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data)  # without the time of now
    return made.getvalue()
