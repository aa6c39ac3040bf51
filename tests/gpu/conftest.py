"""The bundle for the tests on a GPU. It was compiled before, perhaps on another machine."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.knobs import ROOT
from toolchain.runtime import Executor, open_executor


@pytest.fixture(scope="session")
def bundle(request: pytest.FixtureRequest) -> Bundle:
    """The bundle of `--bundle`, or the one that `nox -s gpu_tests` compiled."""
    folder = Path(request.config.getoption("--bundle") or ROOT / "build" / "bundle")
    if not folder.is_dir():
        pytest.fail(f"no bundle in {folder}: pass --bundle DIR, or compile one with `nox -s gpu_tests`", pytrace=False)
    return Bundle.load(folder)


@pytest.fixture(scope="session")
def cuda() -> Generator[Executor]:
    executor = open_executor("cuda")
    yield executor
    executor.synchronize()  # an error of a launch that no test waited for
