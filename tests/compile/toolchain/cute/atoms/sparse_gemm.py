"""Kernels of `cute.gemm` with a sparse A: of four warps, and of two warpgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.cute import dsl as cute
from toolchain.cute.atoms import MmaAtom
from toolchain.cute.atoms.compress import compress
from toolchain.cute.atoms.mma import BITS, WARP
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout

Array = np.ndarray[Any, Any]
ROW_BYTES = 128


def tiled(atom: MmaAtom) -> cute.TiledMma:
    return cute.make_tiled_mma(atom, (2, 2, 1) if atom.threads == WARP else (2, 1, 1))


def sizes(atom: MmaAtom) -> tuple[int, int, int]:
    """M, N and K: two tiles of all threads each, but along K as many as fill a row of shared memory."""
    m, n, k = tiled(atom).tile
    return 2 * m, 2 * n, (2 if atom.threads == WARP else 4) * k


def sparse_gemm(atom: MmaAtom, *, adds: bool) -> cute.Kernel:
    """The kernel `sparse_gemm(a, b, metadata, d)`: D (M, N) is A x B.T, with what D holds before if it `adds`. a
    (M, K/2); b (N, K); metadata (K / k, M / m * threads), as `numbers` has it."""
    mma, (m, n, k) = tiled(atom), sizes(atom)
    of_c = {"s32": "i32"}.get(atom.c, atom.c)

    @cute.kernel(
        cute.Array(atom.ab), cute.Array(atom.ab), cute.Array("i32"), cute.Array(of_c),
        threads=mma.thread_count, name="sparse_gemm",
    )  # fmt: skip
    def kernel(a: Any, b: Any, metadata: Any, d: Any) -> None:
        thread = cute.number(cute.ssa(arch.thread_idx()[0]), below=mma.thread_count)

        def held(which: str, tensor: Any, dtype: str, shape: tuple[int, int]) -> Any:
            part = cute.partition(mma, which, cute.local_tile(tensor, shape, (0, 0)), thread)
            made = cute.make_fragment(part.layout.shape, dtype)
            for i in range(cute.size(part.layout)):
                made[i] = part[i]
            return made

        words = held("E", cute.transposed(metadata), "i32", (m // atom.m * atom.threads, k // atom.k))
        sums = held("C", d, of_c, (m, n))
        if atom.threads == WARP:
            sides = [held("A", a, atom.ab, (m, k // 2)), held("B", b, atom.ab, (n, k))]
        else:
            sides = [
                _shared(mma, which, atom, tensor, shape, thread)
                for which, tensor, shape in (("A", a, (m, k // 2)), ("B", b, (n, k)))
            ]
            arch.instruction("fence.proxy_async")
            arch.sync_threads()
            arch.instruction("wgmma.fence")
        cute.gemm(mma, sums, *sides, *([sums] if adds else []), metadata=words)
        if atom.threads != WARP:
            arch.instruction("wgmma.commit_group")
            arch.instruction("wgmma.wait_group", n=0)
            cute.hold(sums)
        result = cute.partition(mma, "C", cute.local_tile(d, (m, n), (0, 0)), thread)
        for i in range(cute.size(sums.layout)):
            result[i] = sums[i]

    return kernel


def _shared(mma: cute.TiledMma, which: str, atom: MmaAtom, source: Any, shape: tuple[int, int], thread: Any) -> Any:
    """What a warpgroup holds of an operand in shared memory: K side by side, a row of the swizzle after the other."""
    row = ROW_BYTES * 8 // BITS[atom.ab]
    assert shape[1] % row == 0
    layout = Layout((shape[0], (row, shape[1] // row)), (row, (1, row * shape[0])))
    tensor = cute.shared_tensor(atom.ab, layout, swizzle=cute.Swizzle(3, 4, 3))
    for step in cute.range_(shape[0] * shape[1] // mma.thread_count):
        at = step * mma.thread_count + thread
        line, column = at // shape[1], at % shape[1]
        tensor[line, column] = source[line, column]
    return cute.partition(mma, which, tensor, thread)


def numbers(rng: np.random.Generator, atom: MmaAtom, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """Small integers: A (M, K) with its zeros, the same compressed, its metadata, and B (N, K)."""
    m, n, k = sizes(atom)
    wide = 2 if atom.ab == "tf32" else 4
    low = 0 if atom.ab == "u8" else -4
    dense = rng.integers(low, 5, (m, k // wide, wide))
    np.put_along_axis(dense, rng.permuted(np.tile(np.arange(wide), (m, k // wide, 1)), axis=2)[..., wide // 2 :], 0, 2)
    a = dense.reshape(m, k)
    kept, words = compress(a.astype(dtype), atom)
    metadata = np.ascontiguousarray(words.transpose(1, 0, 2).reshape(k // atom.k, -1))
    return a, kept, metadata, rng.integers(low, 5, (n, k)).astype(dtype)
