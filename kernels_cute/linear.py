"""Products for sm_80: out = epilogue(x @ weight), with cp.async, ldmatrix and mma.sync. They run on later GPUs too.

All loops, addresses and predicates follow from the layouts. Shared memory holds `stages` tiles of x and of the weight;
while one is multiplied, the others are on their way.
"""

from dataclasses import dataclass
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from .epilogues import PLAIN, VECTOR, Epilogue, Place

ROW = 64  # elements of 16 bits that a row of 128 bytes has: the widest that a swizzle spreads over all banks
GROUP = 8  # rows of tiles that blocks walk together, so that they find tiles in the L2 cache


@dataclass(frozen=True)
class Tiles:
    """The tile of a block (`m`, `n`, `k`), the pipeline's stages, and the warps along M and N. `aligned`: addresses and
    rows are multiples of 16 bytes; otherwise each element is loaded alone. Raises UsageError."""

    m: int = 128
    n: int = 128
    k: int = 32
    stages: int = 3
    warps: tuple[int, int] = (2, 2)
    aligned: bool = True

    def __post_init__(self) -> None:
        if self.k not in (32, 64):
            raise UsageError(f"a tile of {self.k} along K has no swizzle here", hint="k=32 or k=64")
        if self.m % (16 * self.warps[0]) or self.n % (16 * self.warps[1]) or self.n % ROW:
            raise UsageError(f"a tile of {self.m} x {self.n} is no whole number of atoms for {self.warps} warps")
        if self.n * self.k * self.stages < self.m * ROW:
            raise UsageError(f"{self}: {ROW} columns of the result do not fit where the weight was", hint="more stages")
        if self.stages < 2:
            raise UsageError(f"{self.stages} stages: a tile is loaded while another is multiplied", hint="stages=2")

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]

    @property
    def vector(self) -> int:
        """Elements that are loaded at once."""
        return VECTOR if self.aligned else 1


def linear(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "linear", epilogue: Epilogue = PLAIN
) -> cute.Kernel:
    """The kernel of an epilogue's op with x (M, K), weight (K, N) and out (M, N), all of one 16-bit dtype, with sums in
    f32.

    With `aligned` tiles K and N are multiples of 8. The grid has one dimension: a block for each tile of the output.
    Raises UsageError.
    """
    t = tiles or Tiles()
    # Two atoms of a warp lie side by side along N, so that one ldmatrix loads both.
    side_by_side = Layout((8, t.warps[1], 2), (1, 16, 8))
    mma = cute.make_tiled_mma(cute.find(f"mma.m16n8k16.f32.{dtype}"), (*t.warps, 1), (None, side_by_side, None))
    atom = cute.CopyAtom("cp.async.b128" if t.aligned else "universal.b16", 16)
    along_k, along_n = t.k // t.vector, t.n // t.vector
    load_x = cute.make_tiled_copy(atom, Layout((t.threads // along_k, along_k), (along_k, 1)), Layout((1, t.vector)))
    columns = epilogue.weight_has_columns  # K lies side by side in the weight too, as in x
    load_w = cute.make_tiled_copy(atom, Layout((along_n, t.threads // along_n)), Layout((t.vector, 1)))
    load_w = load_x if columns else load_w
    read_x = cute.make_tiled_copy_like(cute.CopyAtom("ldmatrix.x4", 16), mma, "a")
    read_w = cute.make_tiled_copy_like(cute.CopyAtom("ldmatrix.x4" if columns else "ldmatrix.x4.trans", 16), mma, "b")
    pairs = cute.make_tiled_copy_like(cute.CopyAtom("universal.b32", 16), mma, "c")

    @cute.kernel(*epilogue.parameters(dtype, t.vector), threads=t.threads, name=name)
    def kernel(*arguments: Any) -> None:
        operands = epilogue.operands(arguments)
        x, weight, out = operands["x"], operands["weight"], operands["out"]
        m, n = out.shape
        k = x.shape[1]
        thread = cute.arch.thread_idx()[0]
        row, column = walked(cute.arch.block_idx()[0], cute.ceil_div(m, t.m), cute.ceil_div(n, t.n))

        sx = cute.shared_tensor(dtype, Layout((t.m, t.k, t.stages), (t.k, 1, t.m * t.k)), swizzle=swizzle_of(t.k))
        w = weight if columns else cute.transposed(weight)  # (N, K)
        if columns:
            sw = cute.shared_tensor(dtype, Layout((t.n, t.k, t.stages), (t.k, 1, t.n * t.k)), swizzle=swizzle_of(t.k))
        else:  # N lies side by side, in parts of a row
            shape = ((ROW, t.n // ROW), t.k, t.stages)
            sw = cute.shared_tensor(dtype, Layout(shape, ((1, ROW * t.k), ROW, t.n * t.k)), swizzle=swizzle_of(ROW))
        # The first tile along K has what is left over, a whole number of vectors, so that all others are whole: one
        # comparison says for all loads of an operand if there is a tile, and none is made for each step of K.
        tiles = cute.ceil_div(k, t.k)
        rest = (k - (tiles - 1) * t.k) // t.vector * t.vector
        behind = cute.domain_offset(x, (0, rest)), cute.domain_offset(weight, (0, rest) if columns else (rest, 0))
        loads = [
            _Load(load, (tensor, other), shared, (height, t.k), (extent, k), rest, at, thread)
            for load, tensor, other, shared, height, extent, at in (
                (load_x, x, behind[0], sx, t.m, m, row),
                (load_w, w, behind[1] if columns else cute.transposed(behind[1]), sw, t.n, n, column),
            )
        ]
        reads = [
            (read, cute.partition(read, "S", shared, thread), *fragment(mma, read, operand, (height, t.k), dtype))
            for read, shared, operand, height in ((read_x, sx, "a", t.m), (read_w, sw, "b", t.n))
        ]
        value, rows_of, columns_of = mma.partition("c", Layout((t.m, ROW)))[1].shape
        sums = cute.make_fragment((value, rows_of, (columns_of, t.n // ROW)), "f32")
        cute.fill(sums, 0.0)

        def fetch(number: Any, stage: Any) -> None:
            for load in loads:
                load.first(stage) if number is None else load.whole(number, stage)
            cute.arch.cp_async_commit_group()

        def read_step(step: int, number: Any) -> None:
            for read, shared, _, view in reads:
                cute.copy(read, shared[None, None, step, number % t.stages], view[None, None, step])

        def arrived() -> None:
            """The next tile is there for all threads, and all have read the one before."""
            cute.arch.cp_async_wait_group(t.stages - 2)
            cute.arch.sync_threads()

        for stage in range(t.stages - 1):
            fetch(stage - 1 if stage else None, stage)
        arrived()
        read_step(0, 0)
        (_, _, a, _), (_, _, b, _) = reads
        steps = t.k // 16
        for number in cute.range_(tiles):
            for step in range(steps):  # registers of a step are read while the one before is multiplied
                last = step == steps - 1
                if last:
                    arrived()
                read_step((step + 1) % steps, number + 1 if last else number)
                if step == 0:
                    fetch(number + (t.stages - 2), (number + (t.stages - 1)) % t.stages)
                cute.gemm(mma, sums, a[None, None, step], b[None, None, step], sums)

        cute.arch.cp_async_wait_group(0)
        held = min(t.n // ROW, t.n * t.k * t.stages // (t.m * ROW))
        staged = cute.overlay(sw, Layout((t.m, ROW, held), (ROW, 1, t.m * ROW)), swizzle=swizzle_of(ROW))
        for first in range(0, t.n // ROW, held):
            cute.arch.sync_threads()  # all have read what is overwritten
            parts = range(first, min(first + held, t.n // ROW))
            for part in parts:
                at = (row, column * (t.n // ROW) + part)
                place = Place(mma, (t.m, ROW), at, (m, n), thread, side_by_side=2 if t.aligned else 1)
                values = epilogue(sums[None, None, (None, part)], place, operands)
                cute.copy(pairs, values, cute.partition(mma, "C", staged[None, None, part - first], thread))
            cute.arch.sync_threads()
            for part in parts:
                _write(staged[None, None, part - first], out, (row, column * (t.n // ROW) + part), thread, t)

    return kernel


class _Load:
    """A thread's loads of an operand (rows, K). `sources`: the operand, and the same from its second tile along K on.
    `rest`: the steps of K of the first tile. `at`: the number of the block's tile along the rows."""

    def __init__(
        self, load: Any, sources: tuple[Any, Any], shared: Any, tile: tuple[int, int], shape: tuple[Any, Any],
        rest: Any, at: Any, thread: Any,
    ) -> None:  # fmt: skip
        self.load, self.rows, self.depth, self.rest = load, *shape, rest

        def part(tensor: Any) -> Any:
            return cute.partition(load, "S", cute.local_tile(tensor, tile, (at, None)), thread)  # with the tiles of K

        self.sources = [part(source) for source in sources]
        self.where = part(cute.make_identity_tensor(shape))
        self.target = cute.partition(load, "D", shared, thread)

    def first(self, stage: int) -> None:
        """The first tile."""
        at = (None, None, None, 0)
        self._copy(self.sources[0][at], self.where[at], self.rest.minimum(self.depth), stage)

    def whole(self, number: Any, stage: Any) -> None:
        """A tile behind the first. It is whole or behind the end of K: a thread's first step says for all."""
        source = self.sources[1][None, None, None, number]
        value, rows, steps = source.layout.shape
        begins = self.where[None, None, 0, number]
        plain = Layout((value, rows))
        where = cute.with_layout(begins, Layout((value, rows, steps), (*plain.stride, 0)))
        self._copy(source, where, self.depth - self.rest, stage)

    def _copy(self, source: Any, where: Any, depth: Any, stage: Any) -> None:
        load_tile(self.load, source, self.target[None, None, None, stage], where, (self.rows, depth))


def load_tile(load: Any, source: Any, target: Any, where: Any, inside: Any) -> None:
    """Brings a thread's part of a tile to shared memory, with zeros outside of the array: asynchronously, or element
    by element through registers, which hold zero where nothing is read."""
    if load.atom.is_async:
        cute.copy(load, source, target, where=where, inside=inside)
        return
    held = cute.make_fragment(source.layout.shape, source.dtype)
    cute.copy(load, source, held, where=where, inside=inside)
    cute.copy(load, held, target)


def _write(tile: Any, out: Any, at: tuple[Any, Any], thread: Any, t: Tiles) -> None:
    """A part of 64 columns from shared memory to the output: whole rows at once, and 16 bytes of a thread."""
    along = ROW // t.vector
    atom = cute.CopyAtom(f"universal.b{16 * t.vector}", 16)
    rows = cute.make_tiled_copy(atom, Layout((t.threads // along, along), (along, 1)), Layout((1, t.vector)))
    source = cute.partition(rows, "S", tile, thread)
    held = cute.make_fragment(source.layout.shape, out.dtype)
    cute.copy(rows, source, held)
    where = cute.partition(rows, "D", cute.local_tile(cute.make_identity_tensor(out.shape), (t.m, ROW), at), thread)
    target = cute.partition(rows, "D", cute.local_tile(out, (t.m, ROW), at), thread)
    cute.copy(rows, held, target, where=where, inside=out.shape)


def swizzle_of(row: int) -> cute.Swizzle:
    """Spreads rows of 32 or 64 elements of 16 bits over the banks, 16 bytes at a time."""
    return cute.Swizzle(2, 4, 3) if row == 32 else cute.Swizzle(3, 4, 3)


def walked(tile: Any, down: Any, across: Any) -> tuple[Any, Any]:
    """The row and the column of a tile, of `down` x `across`: GROUP rows of tiles are walked column by column."""
    group, inside = tile // (across * GROUP), tile % (across * GROUP)
    height = (down - group * GROUP).minimum(GROUP)
    return group * GROUP + inside % height, inside // height


def fragment(mma: Any, read: Any, operand: str, tile: tuple[int, int], dtype: str) -> tuple[Any, Any]:
    """The registers of an operand, and the same registers in the order in which a copy fills them."""
    whole = Layout(tile)
    computed = mma.partition(operand, whole)[1]
    made = cute.make_fragment(computed.shape, dtype)
    return made, cute.with_layout(made, cute.retile(read.partition("D", whole)[1], computed, made.layout))
