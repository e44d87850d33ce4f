from __future__ import annotations

from edgeflare.replay import reproduction_archive
from edgeflare.run.run_document import RunDevice


def test_what_the_script_prints_commands_no_terminal() -> None:
    provenance = {
        **dict.fromkeys(("machine", "runtime", "runtime_version"), "board\x1b[2J"),
        "delegate": "\x1b]0;title\x07",
    }
    said = reproduction_archive._place(RunDevice(name="\x1b[1m", provenance=provenance))
    assert said.isprintable()
    assert "board" in said
