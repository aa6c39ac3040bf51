"""Kernels that read arrays through TMA: each launch, and each launch of a graph, reads its own arrays."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import LaunchError
from toolchain.runtime import DeviceBuffer, Executor
from toolchain.runtime.launch import EntryLauncher
from toolchain.runtime.layout import NUMPY

pytestmark = pytest.mark.needs("gpu")
M, N, K = 300, 200, 136  # no tile divides them
Args = dict[str, DeviceBuffer | float]


@pytest.fixture
def entry(cuda: Executor, bundle: Bundle) -> BundleEntry | None:
    """A product that takes tensor maps; None on a GPU whose entries need none."""
    found = [e for e in bundle.entries if e.form.maps and e.spec.op == "linear" and e.spec.runs_on(cuda.target)]
    assert bool(found) == (cuda.target == "sm_90")
    return found[0] if found else None


def arguments(cuda: Executor, dtype: str, seed: int) -> Args:
    rng = np.random.default_rng(seed)
    shapes = {"x": (M, K), "weight": (K, N), "bias": (N,)}
    made: Args = {name: cuda.from_numpy(rng.standard_normal(s).astype(NUMPY[dtype])) for name, s in shapes.items()}
    return made | {"out": cuda.empty((M, N), dtype)}


def error(args: Args) -> float:
    x, weight, bias, out = (a.numpy().astype(np.float64) for a in args.values() if isinstance(a, DeviceBuffer))
    exact = x @ weight + bias
    return float(np.abs(out - exact).max() / np.abs(exact).max())


def test_a_graph_keeps_the_maps_of_each_launch(cuda: Executor, bundle: Bundle, entry: BundleEntry | None) -> None:
    if entry is None:
        return
    launch, several = EntryLauncher(cuda), [arguments(cuda, entry.spec.dtype, seed) for seed in range(3)]
    with cuda.capture() as graph:
        for args in several:
            launch(bundle, entry, args)
    graph.replay()
    assert max(map(error, several)) < 0.01
    for args in several:  # the same, launch by launch, with the maps of an earlier address again
        out = args["out"]
        assert isinstance(out, DeviceBuffer)
        out.fill(np.nan)
        launch(bundle, entry, args)
        assert error(args) < 0.01


def test_a_part_of_an_array_is_read_with_its_strides(cuda: Executor, bundle: Bundle, entry: BundleEntry | None) -> None:
    if entry is None:
        return
    args = arguments(cuda, entry.spec.dtype, 7)
    wide = cuda.empty((M, K + 64), entry.spec.dtype)
    wide.fill(np.nan)  # next to the part that is read
    part = wide.slice(1, 32, 32 + K)
    part.copy_from(args["x"].numpy())  # pyright: ignore[reportAttributeAccessIssue]
    EntryLauncher(cuda)(bundle, entry, args | {"x": part})
    assert error(args) < 0.01


def test_an_array_that_tma_cannot_read_is_refused(cuda: Executor, bundle: Bundle, entry: BundleEntry | None) -> None:
    if entry is None:
        return
    args = arguments(cuda, entry.spec.dtype, 8)
    odd = cuda.empty((M, K + 1), entry.spec.dtype).slice(1, 0, K)
    with pytest.raises(LaunchError, match="x must be aligned to 16 bytes"):
        EntryLauncher(cuda)(bundle, entry, args | {"x": odd})
