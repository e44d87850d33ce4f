"""The rooms keep their directions, and the generated code is what its sources say."""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import build_graph

ROOT = Path(__file__).parents[2]


def test_the_rooms_keep_their_directions() -> None:
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert " 0 broken" in checked.stdout


@pytest.mark.parametrize("package", ["host", "agent", "operators", "protos"])
def test_each_folder_of_modules_is_a_package(package: str) -> None:
    """The linters of imports see no others."""
    folders = {path.parent for path in (ROOT / package).glob("edgeflare*/**/*.py")}
    assert folders
    assert [str(one) for one in folders if not (one / "__init__.py").is_file()] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = build_graph(
        "edgeflare", "edgeflare_agent", "edgeflare_operators", "edgeflare_protos", cache_dir=None
    )
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize("name", ["agent_pb2.py", "agent_pb2.pyi", "agent_pb2_grpc.py"])
def test_the_generated_code_is_that_of_the_proto(name: str, tmp_path: Path) -> None:
    kind = {"agent_pb2.py": "python", "agent_pb2.pyi": "pyi", "agent_pb2_grpc.py": "grpc_python"}
    source = Path("edgeflare_protos/agent.proto")
    subprocess.run(
        [
            sys.executable, "-m", "grpc_tools.protoc", "--proto_path=.",
            f"--{kind[name]}_out={tmp_path}", str(source),
        ],
        cwd=ROOT / "protos",
        timeout=300,
        check=True,
    )  # fmt: skip
    committed = ROOT / "protos" / source.parent / name
    assert (tmp_path / source.parent / name).read_text() == committed.read_text()
