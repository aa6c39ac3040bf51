"""`attention` for sm_80: causal attention of the last T of S positions, with cp.async, ldmatrix and mma.sync. It runs
on later GPUs too.

A block computes a tile of queries of one head, 16 for each warp, tile of keys after tile, the last keys first:

1. Load: all threads copy the queries, which then stay in registers, and the first keys and values by cp.async; in each
   step they start the copies of the next.
2. Weigh: a warp multiplies its queries with the keys, masks the scores, and makes weights of them in its registers;
   sums so far are scaled to the new maximum (online_softmax.py).
3. Add: the weights are A of the product with the values, which is added to the sums. Behind the last tile the sums are
   divided by the weights' sum and written.

It runs on a CPU, here with 64 queries of one head of 64 (toolchain.cute.executor has `run`):

    run(attention(), (q, k, v, out, scale), grid=1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolchain.contract.artifact import MAX_SHARED, MAX_THREADS
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from ..loads import load_tile
from ..products.epilogues import VECTOR
from ..products.linear import ROW, check_loads, fragment, swizzle_of
from .online_softmax import Softmax

STAGES = 2  # of keys and values


@dataclass(frozen=True)
class Tiles:
    """`head`: elements of a head. `warps`: of a block, 16 queries each. `keys`: of a tile. `aligned`: addresses and
    rows are multiples of 16 bytes; otherwise each element is moved alone. Raises UsageError."""

    head: int = 64
    warps: int = 4
    keys: int = 64
    aligned: bool = True

    def __post_init__(self) -> None:
        if self.head not in (32, 64, 128):
            raise UsageError(f"a head of {self.head} elements has no kernel here", hint="head=32, 64 or 128")
        if self.keys % 16:
            raise UsageError(f"a tile of {self.keys} keys is no whole number of atoms", hint="a multiple of 16")
        if self.keys < 16 or self.warps < 1 or self.threads > MAX_THREADS:
            raise UsageError(f"{self}: {self.threads} threads and {self.keys} keys", hint=f"1 to {MAX_THREADS} threads")
        if self.shared_bytes > MAX_SHARED:
            raise UsageError(f"{self} takes {self.shared_bytes} bytes of shared memory", hint=f"at most {MAX_SHARED}")
        check_loads(self, "the queries", self.rows, self.head)
        check_loads(self, "the keys", self.keys, self.head)

    @property
    def shared_bytes(self) -> int:
        """Bytes of a block: its queries, and the stages of keys and values."""
        return (self.rows + 2 * STAGES * self.keys) * self.head * 2

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return 16 * self.warps

    @property
    def threads(self) -> int:
        return arch.WARP * self.warps

    @property
    def vector(self) -> int:
        """Elements that are loaded at once."""
        return VECTOR if self.aligned else 1


def attention(dtype: str = "bf16", tiles: Tiles | None = None, name: str = "attention") -> cute.Kernel:
    """The kernel of q (B, T, H, D), k and v (B, S, H, D), out (B, T, H, D) and the scale, for T <= S. The grid has one
    dimension: a block for each tile of queries of each head."""
    t = tiles or Tiles()
    array = cute.Array(dtype, rank=4, multiple=t.vector, align=16 if t.aligned else 2)

    @cute.kernel(*[array] * 4, cute.Float32(), threads=t.threads, name=name)
    def kernel(q: Any, k: Any, v: Any, out: Any, scale: Any) -> None:
        _Block(q, k, v, out, scale, t).run()

    return kernel


class _Block:
    """A block's work: a tile of queries of one head."""

    def __init__(self, q: Any, k: Any, v: Any, out: Any, scale: Any, t: Tiles) -> None:
        self.t, self.thread, dtype = t, arch.thread_idx()[0], out.dtype
        batch, self.queries, heads, _ = q.shape
        self.keys, block = k.shape[1], arch.block_idx()[0]
        # The last queries of all heads, then those before them: short tiles fill the gaps at the end.
        self.tile = cute.ceil_div(self.queries, t.rows) - 1 - block // (batch * heads)
        sequence, head = block % (batch * heads) // heads, block % heads
        self.q, self.k, self.v, self.out = (tensor[sequence, None, head, None] for tensor in (q, k, v, out))
        self.first = self.keys - self.queries + self.tile * t.rows
        self.steps = cute.ceil_div((self.first + t.rows).minimum(self.keys), t.keys)

        side_by_side = Layout((8, 1, 2), (1, 16, 8))  # two atoms of a warp, so that one ldmatrix loads both
        self.mma = cute.make_tiled_mma(cute.find(f"mma.m16n8k16.f32.{dtype}"), (t.warps, 1, 1), (None, side_by_side))
        along = t.head // t.vector
        atom = cute.CopyAtom("cp.async.b128" if t.aligned else "universal.b16", 16)
        self.load = cute.make_tiled_copy(atom, Layout((t.threads // along, along), (along, 1)), Layout((1, t.vector)))
        straight, turned = cute.CopyAtom("ldmatrix.x4", 16), cute.CopyAtom("ldmatrix.x4.trans", 16)
        self.read_q, self.read_k = (cute.make_tiled_copy_like(straight, self.mma, operand) for operand in "ab")
        self.read_v = cute.make_tiled_copy_like(turned, self.mma, "b")
        self.shared_q = _rows(dtype, t.rows, 1, t.head)
        self.shared_k, self.shared_v = (_rows(dtype, t.keys, STAGES, t.head) for _ in range(2))

        scores, self.result = Layout((t.rows, t.keys)), Layout((t.rows, t.head))
        held = self.mma.partition("c", scores)[1]
        self.s, self.p = cute.make_fragment(held.shape, "f32"), cute.make_fragment(held.shape, dtype)
        self.weights = cute.with_layout(self.p, cute.accumulator_as_a(self.p.layout))
        self.o = cute.make_fragment(self.mma.partition("c", self.result)[1].shape, "f32")
        self.softmax = Softmax(self.mma, scores, self.thread, scale)

    def run(self) -> None:
        t = self.t
        self._bring(self.q, self.shared_q[None, None, 0], t.rows, self.tile, self.queries)
        self._fetch(0)
        self._arrived()
        queries, view = fragment(self.mma, self.read_q, "a", (t.rows, t.head), self.q.dtype)
        cute.copy(self.read_q, cute.partition(self.read_q, "S", self.shared_q[None, None, 0], self.thread), view)
        self.softmax.begin()
        cute.fill(self.o, 0.0)
        cut = self.steps - self.first // t.keys  # steps that the mask cuts: the first ones
        for step in cute.range_(cut):
            self._step(queries, step, cut=True)
        for step in cute.range_(cut, self.steps):
            self._step(queries, step, cut=False)
        self._store()

    def _bring(self, tensor: Any, shared: Any, rows: int, number: Any, extent: Any) -> None:
        """A tile of rows to shared memory, zeros behind the last row."""

        def part(of: Any) -> Any:
            return cute.partition(self.load, "S", cute.local_tile(of, (rows, self.t.head), (number, 0)), self.thread)

        inside = (extent, self.t.head)
        target = cute.partition(self.load, "D", shared, self.thread)
        load_tile(self.load, part(tensor), target, part(cute.make_identity_tensor(inside)), inside)

    def _fetch(self, step: Any) -> None:
        """The keys and values of a step, if there is such a step."""
        with cute.when(cute.less(step, self.steps)):
            number, stage = self.steps - 1 - step, step % STAGES
            for tensor, shared in ((self.k, self.shared_k), (self.v, self.shared_v)):
                self._bring(tensor, shared[None, None, stage], self.t.keys, number, self.keys)
        arch.cp_async_commit_group()

    def _arrived(self) -> None:
        """What was fetched is there for all threads, and all have read what was there before."""
        arch.cp_async_wait_group(0)
        arch.sync_threads()

    def _multiply(self, sums: Any, a: Any, read: Any, shared: Any, tile: tuple[int, int], *, added: bool) -> None:
        """The sums of products with a tile (N, K) in shared memory."""
        b, view = fragment(self.mma, read, "b", tile, self.q.dtype)
        source = cute.partition(read, "S", shared, self.thread)
        for step in range(tile[1] // 16):
            cute.copy(read, source[None, None, step], view[None, None, step])
            c = sums if added or step else None
            cute.gemm(self.mma, sums, a[None, None, step], b[None, None, step], c)

    def _step(self, queries: Any, step: Any, *, cut: bool) -> None:
        t, stage = self.t, step % STAGES
        self._fetch(step + 1)
        keys = self.shared_k[None, None, stage]
        self._multiply(self.s, queries, self.read_k, keys, (t.keys, t.head), added=False)
        if cut:
            self.softmax.mask(self.s, self.first, (self.steps - 1 - step) * t.keys)
        self.softmax.weigh(self.s)
        self.softmax.rescale(self.o, self.mma, self.result)
        cute.convert(self.s, self.p)
        values = cute.transposed(self.shared_v[None, None, stage])
        self._multiply(self.o, self.weights, self.read_v, values, (t.head, t.keys), added=True)
        self._arrived()

    def _store(self) -> None:
        """Divides by the sums, rounds, and writes the rows that the output has."""
        bits = 32 if self.t.aligned else 16
        atoms = cute.make_tiled_copy_like(cute.CopyAtom(f"universal.b{bits}", 16), self.mma, "c")
        shape = (self.queries, self.t.head)

        def part(tensor: Any) -> Any:
            tile = cute.local_tile(tensor, (self.t.rows, self.t.head), (self.tile, 0))
            return cute.partition(self.mma, "C", tile, self.thread)

        self.softmax.divide(self.o, self.mma, self.result)
        made = cute.make_fragment(self.o.layout, self.q.dtype)
        cute.convert(self.o, made)
        cute.copy(atoms, made, part(self.out), where=part(cute.make_identity_tensor(shape)), inside=shape)


def _rows(dtype: str, rows: int, stages: int, head: int) -> Any:
    """(rows, head, stages), in parts as wide as the swizzle."""
    row = min(head, ROW)
    layout = Layout((rows, (row, head // row), stages), (row, (1, row * rows), rows * head))
    return cute.shared_tensor(dtype, layout, swizzle=swizzle_of(row))
