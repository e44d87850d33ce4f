"""A user's hypotheses: what is taken from a file, and one line for each that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.diagnose.inspect.hypothesis_loading import load_hypotheses
from edgeflare.errors import UserError

HEAD = "from edgeflare.hypothesis import hypothesis\n"


def written(folder: Path, code: str, name: str = "mine.py") -> str:
    (folder / name).write_text(HEAD + code)
    return str(folder / name)


def declared(name: str, function: str = "f") -> str:
    return f'@hypothesis("{name}")\ndef {function}(one):\n    return 1.0\n'


def test_hypotheses_come_in_their_order_and_an_alias_counts_once(tmp_path: Path) -> None:
    source = written(tmp_path, declared("one") + declared("two", "g") + "alias = f\n")
    assert [one.name for one in load_hypotheses([source])] == ["one", "two"]


def test_a_module_of_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path, declared("one"), "inspected_things.py")
    assert [one.name for one in load_hypotheses(["inspected_things"])] == ["one"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(one):\n    return 1\n", "has no hypothesis: decorate"),
        (declared("a") + declared("a", "g"), "two hypotheses are named 'a'"),
        (declared("brightness"), "'brightness' is the name of a built-in"),
        (declared(" "), "a hypothesis is named ' '"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        load_hypotheses([written(tmp_path, code)])
    assert "\n" not in str(refused.value)


def test_two_files_may_not_share_a_name(tmp_path: Path) -> None:
    sources = [written(tmp_path, declared("a"), name) for name in ("x.py", "y.py")]
    with pytest.raises(UserError, match="two hypotheses"):
        load_hypotheses(sources)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no Python file"):
        load_hypotheses([str(tmp_path / "none.py")])
