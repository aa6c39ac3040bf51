from __future__ import annotations

import pytest

from ci.matrix import Matrix
from ci.plan.graph import Graph


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return Matrix.load()


@pytest.fixture(scope="session")
def graph(matrix: Matrix) -> Graph:
    return Graph(matrix)
