from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models import runtime_versions
from edgeflare.models.runtime_versions import (
    environments,
    installed_version,
    last_of_each_minor,
    package_of,
    read_versions,
    runtime_python,
)


def test_versions_are_digits_and_dots_each_once() -> None:
    assert read_versions(" 2.1.6, 2.2.0,2.1.6") == ("2.1.6", "2.2.0")
    for wrong in ("2", "2.x", "/usr/bin/python", "2.1.6,", "2.1.6;rm", "1" * 5 + ".0"):
        with pytest.raises(UserError, match=r"is no version: write some as 2.1.6,2.2.0, or all"):
            read_versions(wrong)


def test_all_is_the_last_of_each_minor_version() -> None:
    released = ["2.10.0", "2.1.6", "2.1.10", "2.2.0rc1", "1.0.1", "1.0.0"]
    assert last_of_each_minor(released) == ("1.0.1", "2.1.10", "2.10.0")


def test_the_version_of_this_python_needs_no_environment() -> None:
    package, version = installed_version()
    assert runtime_python(version) == Path(sys.executable)
    assert package_of(Path(sys.executable)) == package


def test_an_environment_whose_python_is_gone_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = environments() / "9.8.7"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(tmp_path / "gone")

    def filled(_: str, made: Path) -> None:
        (made / "bin").mkdir()
        (made / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(runtime_versions, "_fill", filled)
    python = runtime_python("9.8.7")
    assert python == folder / "bin" / "python"
    assert python.exists()
    assert [path.name for path in environments().iterdir()] == ["9.8.7"]


@pytest.mark.slow
def test_a_version_without_a_wheel_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said: list[str] = []
    with pytest.raises(InfrastructureError, match="is there a network"):
        runtime_python("9.8.7", said.append)
    (tmp_path / "ai_edge_litert-0.0.1-cp27-none-any.whl").touch()
    (tmp_path / "tflite_runtime-0.0.1-py3-none-any.whl").touch()
    with pytest.raises(UserError, match=r"^9\.8\.7: there is no wheel of ai-edge-litert or tflite"):
        runtime_python("9.8.7", said.append)
    assert "installing the runtime 9.8.7 into" in said[0]
    assert list((tmp_path / "edgeflare" / "runtimes").iterdir()) == []
