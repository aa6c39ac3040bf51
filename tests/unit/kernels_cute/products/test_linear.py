"""The GEMM for sm_80 on the executor: its results, and what is said of it with a mistake."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import kernels_cute.products.linear as module
from kernels_cute.products.linear import Tiles, linear
from tests.unit.kernels_cute.heads import run_head
from tests.unit.toolchain.cute.executor.mutate import without
from tests.unit.toolchain.cute.executor.ptx import mutate
from toolchain.cute import dsl as cute
from toolchain.cute.executor import MissingWait, OutOfBounds, Race, run
from toolchain.cute.nvgpu import ArchOp
from toolchain.cute.passes import PASSES
from toolchain.errors import UsageError

Array = np.ndarray[Any, Any]
TILES = Tiles(64, 64, 32, 3)


def operands(m: int, n: int, k: int, dtype: Any = ml_dtypes.bfloat16) -> list[Array]:
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (n,))]
    return [*made, np.full((m, n), np.nan, dtype)]


def error(x: Array, weight: Array, bias: Array, out: Array) -> float:
    """The largest difference from float64, over what rounding to the output's dtype allows."""
    exact = x.astype(np.float64) @ weight.astype(np.float64) + bias.astype(np.float64)
    allowed = 2.0 ** (-8 if out.dtype.name == "bfloat16" else -11) * np.abs(exact) * 1.01 + 1e-5
    return float(np.max(np.abs(out.astype(np.float64) - exact) / allowed))


@pytest.mark.parametrize(
    ("shape", "tiles", "dtype"),
    [
        ((70, 72, 168), TILES, ml_dtypes.bfloat16),  # remainders in all three, several blocks, the ring goes round
        ((64, 64, 8), TILES, np.float16),  # fewer tiles than stages
        ((64, 64, 96), Tiles(32, 64, 64, 2, (1, 2)), ml_dtypes.bfloat16),
        ((70, 200, 200), Tiles(64, 192, 32, 3, (1, 2)), ml_dtypes.bfloat16),  # one part of the weight is read ahead
    ],
)
def test_it_agrees_with_float64(shape: tuple[int, int, int], tiles: Tiles, dtype: Any) -> None:
    given = operands(*shape, dtype)
    kernel = linear("f16" if dtype is np.float16 else "bf16", tiles)
    report = run(kernel, given, -(-shape[0] // tiles.m) * -(-shape[1] // tiles.n))
    assert error(*given) <= 1
    assert not report.conflicts


@pytest.fixture(scope="module")
def kernel() -> cute.Kernel:
    return linear("bf16", TILES)


# In the order of the program: the first is before the loop, the second in it.
MISTAKES = [
    ("nvvm.barrier0", 0, (Race, MissingWait)),
    ("nvvm.barrier0", 1, (Race, MissingWait)),
    ("nvvm.cp.async.wait.group", 0, MissingWait),
    ("nvvm.cp.async.wait.group", 1, MissingWait),
    ("nvvm.cp.async.commit.group", 2, MissingWait),
]


@pytest.mark.parametrize(("name", "which", "wanted"), MISTAKES)
def test_a_missing_operation_is_named(kernel: cute.Kernel, name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        run(without(kernel, name, which), operands(64, 64, 160))
    assert found.value.site.op == "cute_nvgpu.arch.copy.ldmatrix"
    assert "kernels_cute/products/linear.py" in found.value.site.location and "shared tensor of" in str(found.value)


@pytest.fixture(scope="module")
def ptx(kernel: cute.Kernel) -> str:
    return kernel.ptx("sm_80")


def test_its_ptx_computes_the_same(kernel: cute.Kernel, ptx: str) -> None:
    ir, given = operands(70, 72, 72), operands(70, 72, 72)
    run(kernel, ir, 4)
    assert not run(kernel, given, 4, ptx=ptx).conflicts
    assert (ir[-1].view(np.uint16) == given[-1].view(np.uint16)).all()


@pytest.mark.parametrize(
    ("opcode", "which", "wanted"),
    [
        ("bar.sync", 0, Race),
        ("bar.sync", 1, MissingWait),
        ("bar.sync", 3, Race),
        ("cp.async.wait_group", 0, MissingWait),
        ("cp.async.wait_group", 1, MissingWait),
        ("cp.async.commit_group", 2, MissingWait),
    ],
)
def test_what_its_ptx_lacks_is_named(kernel: cute.Kernel, ptx: str, opcode: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        run(kernel, operands(64, 64, 160), ptx=mutate.without(ptx, opcode, which))
    assert re.fullmatch(r"linear\.ptx:\d+", found.value.site.location) and "shared tensor of" in str(found.value)


def test_a_wrong_address_in_its_ptx_is_named(kernel: cute.Kernel, ptx: str) -> None:
    with pytest.raises(OutOfBounds, match=r"ldmatrix.* at linear\.ptx:\d+.* outside of its 24576 bytes"):
        run(kernel, operands(64, 64, 40), ptx=mutate.changed(ptx, "ldmatrix", 3, "];", "+16384];"))


def test_a_missing_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbounded(*args: Any, **_: Any) -> None:
        cute_copy(*args)

    cute_copy = cute.copy
    monkeypatch.setattr(module.cute, "copy", unbounded)
    wrong = linear("bf16", TILES)
    monkeypatch.undo()
    with pytest.raises(OutOfBounds) as found:
        run(wrong, dict(zip(("x", "weight", "bias", "out"), operands(64, 64, 40), strict=True)))
    assert found.value.tensor == "x"
    assert re.search(r"from x\[\d+, 40\] on, outside of its shape \(64, 40\)", str(found.value))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"k": 48}, "a tile of 48 along K has no swizzle"),
        ({"m": 40}, "a tile of 40 x 128 is no whole number of atoms"),
        ({"m": 64, "stages": 1}, "1 stages"),
        ({"m": 32, "n": 64, "stages": 2, "warps": (2, 4)}, "1 parts of 16 columns for each of 4 warps"),
        ({"m": 16, "n": 64, "stages": 2, "warps": (1, 1)}, "4 parts of 16 columns for each of 1 warps"),
        ({"m": 256, "n": 256, "warps": (4, 2)}, "256 threads with 256 sums each"),
        ({"m": 256, "k": 64, "stages": 6, "warps": (4, 2)}, "takes 294912 bytes of shared memory"),
        ({"m": 32, "n": 128, "stages": 2, "warps": (2, 4)}, "256 threads do not load a tile of x of 32 rows of 32"),
        ({"m": 96, "n": 128, "warps": (2, 4)}, "256 threads do not load a tile of x of 96 rows of 32 elements"),
    ],
)
def test_tiles_that_do_not_fit_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Tiles(**fields)


@pytest.mark.parametrize("tiles", [TILES, Tiles(), Tiles(64, 192, 32, 3, (1, 2))])
def test_the_shared_memory_is_what_the_kernel_takes(tiles: Tiles) -> None:
    assert tiles.shared_bytes == linear("bf16", tiles).shared_bytes


@pytest.mark.parametrize(("swizzle", "worst"), [((0, 4, 3), 8), ((1, 4, 3), 4), ((2, 4, 3), 2)])
def test_a_wrong_swizzle_is_counted(swizzle: tuple[int, int, int], worst: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(_: int) -> cute.Swizzle:
        return cute.Swizzle(*swizzle)

    monkeypatch.setattr(module, "swizzle_of", chosen)
    wrong = linear("bf16", Tiles(64, 64, 64, 2))
    given = operands(64, 64, 64)
    report = run(wrong, given)
    assert error(*given) <= 1  # slower, not wrong
    assert report.accesses[0].worst == worst
    loads = [row for row in report.conflicts if row.op == "cute_nvgpu.arch.copy.ldmatrix"]
    assert loads and all(row.turns == worst * row.served for row in loads)


def test_ldmatrix_with_another_layout_gives_wrong_numbers(kernel: cute.Kernel) -> None:
    """The layouts of a kernel in Python would not let it pass; a pass that mixed up the two would be found so."""
    given = operands(64, 64, 32)
    strides = [[stride // array.itemsize for stride in array.strides] for array in given]
    args = [arg for array, steps in zip(given, strides, strict=True) for arg in (array, *array.shape, *steps)]
    module = kernel.module.clone()
    for name in ("cute-expand-atoms", "cute-lower"):
        PASSES[name](module)
    run(module, args, shared_bytes=kernel.shared_bytes)
    assert error(*given) <= 1
    for op in module.walk():
        if isinstance(op, ArchOp) and op.atom_name == "ldmatrix.x4.trans":
            op.properties["atom"] = StringAttr("ldmatrix.x4")
    run(module, args, shared_bytes=kernel.shared_bytes)
    assert error(*given) > 10


def test_the_head_of_the_module_runs_it() -> None:
    given = operands(64, 64, 40)
    run_head(module, **dict(zip(("x", "weight", "bias", "out"), given, strict=True)))
    assert error(*given) <= 1
