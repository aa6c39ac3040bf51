from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import DeviceError, LaunchError, WrongTarget
from toolchain.runtime import DeviceBuffer, Executor, Launcher, open_executor
from toolchain.runtime.launch import EntryLauncher
from toolchain.runtime.layout import NUMPY

pytestmark = pytest.mark.needs("gpu")
DTYPES = {"f32": 1e-6, "f16": 2e-3, "bf16": 2e-2}


def gelu(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def inputs(cuda: Executor, dtype: str, shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, DeviceBuffer]:
    array = np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])
    return array, cuda.from_numpy(array)


def having(bundle: Bundle, op: str, dtype: str) -> list[str]:
    """The sources that have an op."""
    return [source for source in bundle.sources if bundle.entries_of(source, op, dtype)]


@pytest.mark.parametrize("shape", [(1, 1), (100, 48), (7, 1000)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_of_every_source(cuda: Executor, bundle: Bundle, dtype: str, shape: tuple[int, int]) -> None:
    array, x = inputs(cuda, dtype, shape)
    for source in having(bundle, "gelu", dtype):
        out = cuda.empty(shape, dtype)
        out.fill(np.nan)
        Launcher(bundle, source, cuda)("gelu", dtype, x=x, out=out)
        error = np.abs(out.numpy().astype(np.float64) - gelu(array)).max()
        assert error <= 3 * DTYPES[dtype], source


def test_strides_and_scalars_reach_the_kernel(cuda: Executor, bundle: Bundle) -> None:
    array, wide = inputs(cuda, "f32", (5, 200))
    _, weight = inputs(cuda, "f32", (96,), 1)
    x, out = wide.slice(1, 8, 104), cuda.empty((5, 200), "f32")
    rows = array[:, 8:104].astype(np.float64)
    centred = rows - rows.mean(1, keepdims=True)
    for source in having(bundle, "layernorm", "f32"):
        for eps in (1e-5, 4.0):
            out.fill(7)
            norm = Launcher(bundle, source, cuda)
            norm("layernorm", "f32", x=x, weight=weight, bias=weight, out=out.slice(1, 8, 104), eps=eps)
            scale = weight.numpy().astype(np.float64)
            wanted = centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * scale + scale
            found = out.numpy()
            assert np.abs(found[:, 8:104] - wanted).max() < 1e-5, source
            assert (found[:, :8] == 7).all()
            assert (found[:, 104:] == 7).all()


def test_a_captured_launch_follows_its_input(cuda: Executor, bundle: Bundle) -> None:
    _, x = inputs(cuda, "f32", (64, 64))
    out = cuda.empty((64, 64), "f32")
    for source in having(bundle, "gelu", "f32"):
        launcher = Launcher(bundle, source, cuda)
        with cuda.capture() as graph:
            launcher("gelu", "f32", x=x, out=out)
        for seed in range(3):
            array, _ = inputs(cuda, "f32", (64, 64), seed)
            x.copy_from(array)
            graph.replay()
            assert np.abs(out.numpy() - gelu(array)).max() < 1e-5


def only(entry: BundleEntry, target: str) -> BundleEntry:
    return dataclasses.replace(entry, cubins={target: next(iter(entry.cubins.values()))})


def test_a_bundle_for_another_target(cuda: Executor, bundle: Bundle) -> None:
    _, x = inputs(cuda, "f32", (64, 64))
    args = {"x": x, "out": cuda.empty((64, 64), "f32")}
    entry = Launcher(bundle, bundle.sources[0], cuda).select("gelu", "f32", **args)
    other = "sm_120" if cuda.target != "sm_120" else "sm_100"
    with pytest.raises(WrongTarget, match=f"{entry.spec.symbol}.*{other}.*compute capability"):
        EntryLauncher(cuda)(bundle, only(entry, other), args)


def test_a_symbol_that_the_cubin_lacks_is_named(cuda: Executor, bundle: Bundle) -> None:
    _, x = inputs(cuda, "f32", (64, 64))
    args = {"x": x, "out": cuda.empty((64, 64), "f32")}
    entry = Launcher(bundle, bundle.sources[0], cuda).select("gelu", "f32", **args)
    renamed = dataclasses.replace(entry, spec=dataclasses.replace(entry.spec, symbol="no_such_entry"))
    with pytest.raises(DeviceError, match=r"no_such_entry.*CUDA_ERROR_NOT_FOUND"):
        EntryLauncher(cuda)(bundle, renamed, args)


def test_a_grid_beyond_the_device(cuda: Executor, bundle: Bundle) -> None:
    _, x = inputs(cuda, "f32", (64, 64))
    args = {"x": x, "out": cuda.empty((64, 64), "f32")}
    entry = Launcher(bundle, bundle.sources[0], cuda).select("gelu", "f32", **args)
    wide = dataclasses.replace(entry, spec=dataclasses.replace(entry.spec, grid=("1", "M * 1024", "1")))
    with pytest.raises(LaunchError, match="65535 blocks in y"):
        EntryLauncher(cuda)(bundle, wide, args)


@pytest.mark.needs("two-gpus")
def test_buffers_of_another_gpu_are_refused(cuda: Executor, bundle: Bundle) -> None:
    other = open_executor("cuda:1")
    launcher = Launcher(bundle, bundle.sources[0], other)
    array, x = inputs(other, "f32", (64, 64))
    out = other.empty((64, 64), "f32")
    launcher("gelu", "f32", x=x, out=out)
    assert np.abs(out.numpy() - gelu(array)).max() < 1e-5
    with pytest.raises(LaunchError, match=r"x is on cuda:0.*cuda:1"):
        launcher("gelu", "f32", x=inputs(cuda, "f32", (64, 64))[1], out=out)


CRASH = """if True:
    import sys
    from toolchain.bundles.bundle import Bundle
    from toolchain.errors import DeviceError
    from toolchain.runtime import Allocation, DeviceBuffer, Launcher, open_executor
    cuda, bundle = open_executor("cuda"), Bundle.load(sys.argv[1])
    nowhere = Allocation(0x10000, 4 * 64 * 64, lambda allocation: None)
    x = DeviceBuffer(cuda, nowhere, 0, "f32", (64, 64), (64, 1))
    out = cuda.empty((64, 64), "f32")
    Launcher(bundle, bundle.sources[0], cuda)("gelu", "f32", x=x, out=out)
    for use in (cuda.synchronize, out.numpy):
        try:
            use()
        except DeviceError as error:
            print(error)
    out.free()
"""


def test_a_bad_access_is_said_to_lose_the_context(bundle: Bundle) -> None:
    run = subprocess.run([sys.executable, "-c", CRASH, str(bundle.root)], capture_output=True, text=True, check=True)
    assert run.stdout.count("the CUDA context is lost") == 2
    assert "gelu" in run.stdout
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in run.stdout
    assert run.stderr == ""
