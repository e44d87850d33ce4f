from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.bench.bench_document import Bench
from edgeflare.models.pair import load_pair
from example_bench import EXAMPLE, Bencher


@pytest.fixture(scope="session")
def bencher() -> Bencher:
    return Bencher(load_pair(EXAMPLE))


@pytest.fixture(scope="session")
def whole(bencher: Bencher, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bench]:
    """A bench that ran undisturbed, and its folder. Copy the folder before changing it."""
    out = tmp_path_factory.mktemp("bench") / "whole"
    return out, bencher.run(out)
