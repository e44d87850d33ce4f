"""No cluster without a token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.fleet.cluster.ray_cluster import MODE, TOKEN, TOKEN_PATH, make_token, require_token


@pytest.mark.parametrize(
    "environment", [{}, {MODE: "disabled"}, {MODE: "", TOKEN: "t"}, {TOKEN: "t"}]
)
def test_authentication_must_be_on(
    environment: dict[str, str], tmp_path: Path, refusal: Callable[..., str]
) -> None:
    assert f"{MODE}=token" in refusal(require_token, environment, tmp_path)


def test_there_must_be_a_token_somewhere(tmp_path: Path, refusal: Callable[..., str]) -> None:
    file = tmp_path / ".ray" / "auth_token"
    assert str(file) in refusal(require_token, {MODE: "token"}, tmp_path)
    file.parent.mkdir()
    file.write_text(" \n")
    assert str(file) in refusal(require_token, {MODE: "token"}, tmp_path)
    other = tmp_path / "other"
    assert str(other) in refusal(require_token, {MODE: "token", TOKEN_PATH: str(other)}, tmp_path)

    file.write_text("token\n")
    require_token({MODE: "token"}, tmp_path)
    require_token({MODE: "token", TOKEN: "t"}, tmp_path / "nowhere")


def test_a_token_of_its_own_is_new_each_time(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        environment = {TOKEN_PATH: "somewhere"}
        make_token(environment)
        require_token(environment, tmp_path / "nowhere")
        assert TOKEN_PATH not in environment
        made.append(environment[TOKEN])
    assert len(set(made)) == 2
    assert min(map(len, made)) == 64
