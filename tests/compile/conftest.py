"""Both sources' kernels as bytecode, for the interpreter: no GPU compiler is run."""

from __future__ import annotations

import importlib

import pytest

from toolchain.bundle import Bundle, Compiled, write


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    sources = [importlib.import_module(name).SOURCE for name in ("kernels_mlir", "kernels_py")]
    compiled = [Compiled(spec, source.artifact(spec), {}) for source in sources for spec in source.entries()]
    return write(tmp_path_factory.mktemp("kernels") / "bundle", compiled, {})
