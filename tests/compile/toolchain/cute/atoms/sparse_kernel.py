"""A kernel of one warpgroup with a sparse A, and the numbers for it: four products one after the other along K."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.atoms import MmaAtom
from toolchain.cute.atoms.mma import BITS
from toolchain.cute.dsl import arch
from toolchain.cute.executor.instructions.matrices import DTYPES
from toolchain.cute.layout import Layout
from toolchain.cute.nvgpu.descriptor import shared_operand

STEPS = 4
ROW_BYTES = 128
SWIZZLE = cute.Swizzle(3, 4, 3)
Array = np.ndarray[Any, Any]
# Each dtype, and both ways in which 16-bit operands may lie: the atom, and what is side by side in A and in B.
CASES = (
    ("m64n16k32.f32.f16", "kk"), ("m64n64k32.f32.bf16", "mm"), ("m64n8k16.f32.tf32", "kk"),
    ("m64n8k64.f32.e4m3", "kk"), ("m64n16k64.f32.e5m2", "kk"), ("m64n8k32.f16.f16", "kk"),
    ("m64n24k64.s32.s8", "kk"), ("m64n8k64.s32.u8", "kk"),
)  # fmt: skip


def sparse_product(atom: MmaAtom, majors: str = "kk") -> cute.Kernel:
    """The kernel `sparse_product(a, b, metadata, out)` of a wgmma_sp atom: out = A x B.T with K of four products.

    a (64, K/2): the values that were kept; b (N, K); metadata (4, 128) i32: of each product, for each thread; out: the
    32-bit registers of the sums (64, N * bits / 32). `majors`: what lies side by side in shared memory, `k` or `m`."""
    accumulator = f32 if atom.c == "f32" else i32
    packed = 32 // BITS[atom.c]

    @cute.kernel(
        cute.Array(atom.ab), cute.Array(atom.ab), cute.Array("i32"), cute.Array("f32" if atom.c == "f32" else "i32"),
        threads=atom.threads, name="sparse_product",
    )  # fmt: skip
    def kernel(a: Any, b: Any, metadata: Any, out: Any) -> None:
        thread = cute.number(cute.ssa(arch.thread_idx()[0]), below=atom.threads)
        sides = [_Side(o, atom, s, major, thread) for o, s, major in zip("ab", (a, b), majors, strict=True)]
        words = [metadata[step, thread] for step in range(STEPS)]
        arch.instruction("fence.proxy_async")
        arch.sync_threads()

        count = atom.registers("c")
        sums: Any = [cute.scalar(0, accumulator)] * count
        arch.instruction("wgmma.fence")
        for step in range(STEPS):
            places = [side.descriptor(step) for side in sides]
            said = {"results": [accumulator] * count, "atom": f"{atom.name}.{majors}"}
            sums = arch.instruction("mma.wgmma_sp", *sums, *places, words[step], int(step > 0), **said)
        arch.instruction("wgmma.commit_group")
        arch.instruction("wgmma.wait_group", n=0)
        for i, value in enumerate(arch.instruction("registers", *sums, results=[accumulator] * count)):
            place = atom.layout("c")((thread, i * packed))
            out[place % atom.m, place // (atom.m * packed)] = cute.Scalar(value)

    return kernel


class _Side:
    """A or B in shared memory, as many columns side by side as a row of the swizzle has."""

    def __init__(self, operand: str, atom: MmaAtom, source: Any, major: str, thread: Any) -> None:
        rows, self.depth = atom.tile(operand)
        self.rows, row = rows, ROW_BYTES * 8 // BITS[atom.ab]
        columns = self.depth * STEPS
        if major == "m":  # rows are side by side, as many as there are
            layouts = [Layout((rows, columns), (1, row))]
        else:
            layouts = [Layout((rows, row), (row, 1))] * (columns // row)
        self.width = columns // len(layouts)
        self.parts = [cute.shared_tensor(atom.ab, layout, swizzle=SWIZZLE) for layout in layouts]
        for number, part in enumerate(self.parts):
            for step in cute.range_(rows * self.width // atom.threads):
                at = step * atom.threads + thread
                line, column = at // self.width, at % self.width
                part[line, column] = source[line, column + number * self.width]

    def descriptor(self, step: int) -> Any:
        """Of one product's tile."""
        number, first = divmod(step * self.depth, self.width)
        tile = cute.local_tile(self.parts[number], (self.rows, self.depth), (0, first // self.depth))
        found = shared_operand("sparse_product", tile.kind.data)
        return arch.smem_descriptor(cute.address(tile), "sm_90", stride=found.stride, leading=found.leading)


def sparse_numbers(rng: np.random.Generator, atom: MmaAtom, steps: int = 1) -> tuple[Array, Array, Array, Array]:
    """Small integers: A (M, K) with its zeros, the same compressed (M, K/2), its metadata (steps, threads) i32, and
    B (N, K). Each chunk of A keeps places of its own. The metadata is put together as the PTX manual shows it."""
    tf32, k = atom.ab == "tf32", atom.k * steps
    chunk, kept = (2, 1) if tf32 else (4, 2)
    low = 0 if atom.ab == "u8" else -4
    places = np.sort(rng.permuted(np.tile(np.arange(chunk), (atom.m, k // chunk, 1)), axis=2)[:, :, :kept], axis=2)
    values = rng.integers(low, 5, places.shape)
    dense = np.zeros((atom.m, k // chunk, chunk), np.int64)
    np.put_along_axis(dense, places, values, axis=2)
    codes = 0b0100 + 0b1010 * places[..., 0] if tf32 else places[..., 0] | places[..., 1] << 2
    words = [_words(atom, part) for part in np.split(codes, steps, axis=1)]
    b = rng.integers(low, 5, (atom.n, k))
    dtype = DTYPES[atom.ab]
    return dense.reshape(atom.m, k), values.reshape(atom.m, k // 2).astype(dtype), np.stack(words), b.astype(dtype)


def _words(atom: MmaAtom, codes: Array) -> Array:
    """The register of each thread, from the four bits of each chunk (M, chunks)."""
    made = np.full(atom.threads, -1, np.int32)  # of threads whose register does not count: no metadata at all
    for thread in range(atom.threads):
        warp, group, inside = thread // 32, thread % 32 // 4, thread % 4
        row = 16 * warp + group
        if BITS[atom.ab] == 8:  # a row of 32 columns in one register
            held = codes[row + inside % 2 * 8, inside // 2 * 8 :][:8]
        else:  # 16 columns (of tf32, 8) of two rows
            held = np.concatenate([codes[r, inside * 4 :][:4] for r in (row, row + 8)])
        if len(held):
            made[thread] = np.uint32(sum(int(code) << 4 * i for i, code in enumerate(held))).astype(np.int32)
    return made
