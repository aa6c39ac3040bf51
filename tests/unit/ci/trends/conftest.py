from __future__ import annotations

from pathlib import Path

import pytest

from ci.trends.nights import Night, nights

from . import synthetic


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten synthetic nights: see synthetic.py."""
    return synthetic.write(tmp_path_factory.mktemp("nights"))


@pytest.fixture(scope="session")
def ten(folder: Path) -> list[Night]:
    return nights([folder])
