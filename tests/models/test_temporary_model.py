"""A model in a temporary file, of which errors speak by another name."""

from __future__ import annotations

import pytest

from edgeflare.errors import InfrastructureError
from edgeflare.models.temporary_model import temporary_model


def test_the_file_is_there_within_and_gone_behind() -> None:
    with temporary_model(b"TFL3", "some-folded", "some.tflite") as path:
        assert path.name == "some-folded.tflite"
        assert path.read_bytes() == b"TFL3"
    assert not path.parent.exists()


def test_an_error_that_passes_names_what_the_user_knows() -> None:
    def lose() -> None:
        with temporary_model(b"", "some-folded", "my.tflite, folded") as path:
            raise InfrastructureError(f"{path}: its worker died; open {path} again")

    with pytest.raises(InfrastructureError) as caught:
        lose()
    assert str(caught.value) == "my.tflite, folded: its worker died; open my.tflite, folded again"
