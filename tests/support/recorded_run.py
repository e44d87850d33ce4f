"""A recorded run of a campaign over linear models, with findings of several causes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from documents import Document
from edgeflare.core.query import Arm
from laboratory import CLASSES, SIDE, Laboratory, linear


@dataclass(frozen=True)
class Run:
    """A campaign over linear models that came to its end."""

    folder: Path
    document: Document


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with findings of several causes, and a seed that deviates itself."""
    rng = np.random.default_rng(7)
    images = rng.integers(0, 256, (24, SIDE, SIDE, 1), dtype=np.uint8)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.5, size=weights.shape).astype(np.float32)
    skewed = bent + rng.normal(scale=0.4, size=weights.shape).astype(np.float32)
    laboratory = Laboratory(
        tmp_path_factory.mktemp("laboratory"),
        images,
        {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(skewed, 0.01)},
    )
    document = laboratory.run("run")
    assert document["findings"]
    assert document["deviating_seeds"]
    return Run(laboratory.folder / "run", document)
