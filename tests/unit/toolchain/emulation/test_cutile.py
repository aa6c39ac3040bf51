"""What of cuTile is replaced, and the check of it."""

from __future__ import annotations

from types import ModuleType

import cuda.tile
import cuda.tile._compile as compiling
import numpy as np
import pytest

from toolchain.emulation import arrays, cutile
from toolchain.emulation.storages import Storages
from toolchain.errors import LaunchError, ToolchainError, UsageError


def test_all_that_is_replaced_is_there() -> None:
    cutile.check()


def test_an_unknown_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.tile, "__version__", "2.0.0")
    with pytest.raises(ToolchainError, match=r"cuda-tile 2\.0\.0 cannot run on the interpreter.*1\.7\.x"):
        cutile.check()


def test_a_missing_name_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(compiling, "compile_cubin")
    with pytest.raises(ToolchainError, match=r"it lacks cuda\.tile\._compile\.compile_cubin"):
        cutile.check()


def test_jax_is_refused_by_name() -> None:
    module = ModuleType("cuda.tile.jax")
    vars(module).update(__all__=["cutile_call"], cutile_call=print)
    cutile.refuse_jax(module)
    with pytest.raises(UsageError, match="JAX"):
        module.cutile_call()


def test_arrays_on_a_gpu_are_refused_by_name() -> None:
    class OfCupy:
        __module__ = "cupy._core"

    class OnGpu:
        def __dlpack__(self) -> None: ...

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(UsageError, match="CuPy"):
        arrays.passed((1, [OfCupy()]), Storages())
    with pytest.raises(UsageError, match="GPU's memory"):
        arrays.passed(OnGpu(), Storages())
    with pytest.raises(LaunchError, match="complex128"):
        arrays.passed(np.zeros(2, complex), Storages())


def test_what_is_no_array_passes_as_it_is() -> None:
    value = (1, 2.5, None, "x")
    assert arrays.passed(value, Storages()) == value
