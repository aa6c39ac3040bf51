"""`attention` for sm_90a: causal attention of the last T of S positions, with TMA, mbarriers and wgmma.

Blocks walk tiles of queries (attention_walk.py). One warpgroup loads, the others compute 64 queries each and share the
keys and values, of which those that the causal mask cuts come first:

1. Load: one thread brings the queries of a tile, then tile after tile of keys and values by TMA, as far ahead as
   stages are free.
2. Weigh: a warpgroup multiplies its queries with a tile of keys by wgmma, masks the scores, and makes weights of
   them in its registers; sums so far are scaled to the new maximum (online_softmax.py).
3. Add: the weights are A, from registers, of the product with the tile of values, which is added to the sums. Behind
   the last tile the sums are divided by the weights' sum and written.

It runs on a CPU, here with 64 queries and keys of one head (toolchain.cute.executor has `run` and `TensorMap`):

    maps_ = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(Tiles())]
    run(attention(), (q, k, v, out, scale, *maps_), grid=1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout

from .attention_walk import ROW, WARPGROUP, Place, Tiles, Walk
from .online_softmax import Softmax

SWIZZLE = cute.Swizzle(3, 4, 3)


def maps(tiles: Tiles) -> tuple[TensorMap, ...]:
    """The tensor maps that the kernel takes behind its op's parameters: a box is rows of one head of one sequence."""
    q, keys = (1, tiles.rows, 1, ROW), (1, tiles.keys, 1, ROW)
    return TensorMap("q", q, 128), TensorMap("k", keys, 128), TensorMap("v", keys, 128)


@dataclass(frozen=True)
class Scheme:
    """What kernels of one GPU and of several do in ways of their own: the tensor maps, the scalars behind the scale,
    and what a warpgroup does, which gets these scalars and the maps behind the first three. `out_rank`: dimensions of
    the output."""

    maps: Callable[[Tiles], tuple[TensorMap, ...]] = maps
    scalars: tuple[cute.Parameter, ...] = ()
    consumer: Callable[..., Consumer] = lambda *given: Consumer(*given)
    out_rank: int = 4


def attention(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "attention_sm90", scheme: Scheme | None = None
) -> cute.Kernel:
    """The kernel of q (B, T, H, D), k and v (B, S, H, D), out (B, T, H, D) and the scale, for T <= S.

    Behind the op's parameters it takes the tensor maps that `maps` describes. The grid has one dimension, of at most a
    block for each tile of queries and head: blocks walk them, those with the most keys first.
    """
    t, scheme = tiles or Tiles(), scheme or Scheme()
    arrays = [cute.Array(dtype, rank=rank, multiple=8) for rank in (4, 4, 4, scheme.out_rank)]
    parameters = (*arrays, cute.Float32(), *scheme.scalars, *[cute.TensorMap()] * len(scheme.maps(t)))
    more = len(scheme.scalars)

    @cute.kernel(*parameters, threads=t.threads, name=name, min_blocks=t.blocks)
    def kernel(q: Any, k: Any, _v: Any, out: Any, scale: Any, *rest: Any) -> None:
        scalars, tensor_maps = rest[:more], rest[more:]
        thread = arch.thread_idx()[0]
        shared = Shared(dtype, t)
        with cute.when(cute.same(thread, 0)):
            shared.init()
            arch.instruction("mbarrier.init_fence")
        arch.sync_threads()
        arch.grid_wait()
        walk = Walk(q.shape, k.shape[1], t)
        loads, computes = t.registers
        with cute.when(cute.less(thread, WARPGROUP)):
            arch.instruction("set_registers", atom="dec", n=loads)
            with cute.when(cute.same(thread, 0)):
                _load(tensor_maps[:3], shared, walk, t)
        with cute.when(cute.less(WARPGROUP - 1, thread)):
            arch.instruction("set_registers", atom="inc", n=computes)
            scheme.consumer(out, scale, shared, thread - WARPGROUP, t, *scalars, *tensor_maps[3:]).run(walk)

    return kernel


class Shared:
    """Tiles of queries, keys and values in shared memory, and for each the barriers "it is full" and "it is free"."""

    def __init__(self, dtype: str, t: Tiles) -> None:
        self.tiles = [_rows(dtype, rows, stages, t.head) for rows, stages in t.held]
        self.bytes = [rows * t.head * 2 for rows, _ in t.held]
        self.full = [Barriers(stages, 1) for _, stages in t.held]
        self.free = [Barriers(stages, t.consumers) for _, stages in t.held]
        self.warps = t.warps
        self.unsound = cute.shared_tensor("i32", Layout(self.warps), align=4)  # a word for each warp that computes
        self.judged = Barriers(1, t.consumers * WARPGROUP)

    def init(self) -> None:
        for barriers in (*self.full, *self.free, self.judged):
            barriers.init()
        cute.fill(self.unsound, 0)

    def verdict(self) -> Any:
        """1 if a warp found its sums unsound, else 0. Waits for all of them."""
        self.judged.wait(0)
        found = cute.number(self.unsound[0].value)
        for warp in range(1, self.warps):
            found = found + cute.number(self.unsound[warp].value)
        return found.minimum(1)


def _rows(dtype: str, rows: int, stages: int, head: int) -> Any:
    """(rows, head, stages), in parts of 64 columns, as TMA writes them."""
    layout = Layout((rows, (ROW, head // ROW), stages), (ROW, (1, ROW * rows), rows * head))
    return cute.shared_tensor(dtype, layout, swizzle=SWIZZLE)


def _load(tensor_maps: tuple[Any, ...], shared: Shared, walk: Walk, t: Tiles) -> None:
    """One thread's work: brings the tiles by TMA, as far ahead as there is room."""

    def bring(which: int, number: Any, row: Any, place: Place) -> None:
        full = shared.full[which]
        shared.free[which].wait(number, free=True)
        full.expect(number, shared.bytes[which])
        stage = number % full.stages
        for part in range(t.head // ROW):
            target = cute.address(shared.tiles[which][None, (None, part), stage])
            where = (part * ROW, place.head, row, place.sequence)
            arch.instruction("copy.tma_load", target, tensor_maps[which], full.at(stage), *where)

    for place in walk.places(shared.verdict):
        bring(0, place.turn, place.tile * t.rows, place)
        for step in cute.range_(place.steps):
            row = (place.steps - 1 - step) * t.keys
            bring(1, place.before + step, row, place)
            bring(2, place.before + step, row, place)


class Consumer:
    """A warpgroup's work: the scores of a tile of keys, their softmax, and its product with the values."""

    def __init__(self, out: Any, scale: Any, shared: Shared, worker: Any, t: Tiles) -> None:
        self.out, self.shared, self.worker, self.t = out, shared, worker, t
        dtype = out.dtype
        self.scores = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.keys}k16.f32.{dtype}"), (t.consumers, 1, 1))
        self.product = cute.make_tiled_mma(cute.find(f"wgmma_rs.m64n{t.head}k16.f32.{dtype}"), (t.consumers, 1, 1))
        q, k, v = shared.tiles
        self.q, self.k = cute.partition(self.scores, "A", q, worker), cute.partition(self.scores, "B", k, worker)
        self.v = cute.partition(self.product, "B", cute.transposed(v), worker)
        held = self.scores.partition("c", Layout((t.rows, t.keys)))[1]
        self.s, self.p = cute.make_fragment(held.shape, "f32"), cute.make_fragment(held.shape, dtype)
        self.weights = cute.with_layout(self.p, cute.accumulator_as_a(self.p.layout))
        self.tile = Layout((t.rows, t.head))
        self.o = cute.make_fragment(self.product.partition("c", self.tile)[1].shape, "f32")
        self.softmax = Softmax(self.scores, Layout((t.rows, t.keys)), worker, scale)
        self.chief, self.group = cute.same(worker % WARPGROUP, 0), worker // WARPGROUP

    def run(self, walk: Walk) -> None:
        t = self.t
        if t.in_turns:  # the first warpgroup begins: the last one lets it
            with cute.when(cute.same(self.group, t.consumers - 1)):
                arch.instruction("barrier.arrive", 1, n=2 * WARPGROUP)
        step = self._step_ahead if t.ahead else self._step
        for place in walk.places(self._verdict):
            self.softmax.begin()
            cute.fill(self.o, 0.0)
            self.shared.full[0].wait(place.turn)
            if t.ahead:
                self._begin_ahead(place)
            for number in cute.range_(int(t.ahead), place.cut):
                step(place, number, cut=True)
            if t.anchored:
                for number in cute.range_(place.cut, place.anchored):
                    step(place, number, anchored=True)
            for number in cute.range_(place.anchored if t.anchored else place.cut, place.steps):
                step(place, number)
            self.queries_read(place)
            if t.ahead:
                last = place.before + (place.steps - 1)
                self._multiply_values(last)
                self._values_done(last)
            if t.anchored:
                with cute.when(cute.invert(self.softmax.is_sound(self.o))):
                    self.shared.unsound[self.worker // arch.WARP] = 1
            self.softmax.divide(self.o, self.product, self.tile)
            self.store(place)
        self.finish()

    def queries_read(self, place: Place) -> None:
        """Their place in shared memory is free again."""
        self.free(0, place.turn)

    def finish(self) -> None:
        """Behind all tiles."""

    def _verdict(self) -> Any:
        """This warp has found its sums sound, or has said that they are not; then as the others find."""
        arch.instruction("warp_sync")
        self.shared.judged.arrive(0)
        return self.shared.verdict()

    def free(self, which: int, number: Any) -> None:
        with cute.when(self.chief):
            self.shared.free[which].arrive(number)

    def _multiply_keys(self, place: Place, number: Any) -> None:
        self.shared.full[1].wait(number)
        arch.instruction("wgmma.fence")
        queries, keys = self.q[None, None, None, place.turn % 2], self.k[None, None, None, number % self.t.stages]
        cute.gemm(self.scores, self.s, queries, keys)
        arch.instruction("wgmma.commit_group")

    def _multiply_values(self, number: Any) -> None:
        self.shared.full[2].wait(number)
        cute.hold(self.p, self.o)
        arch.instruction("wgmma.fence")
        values = self.v[None, None, None, number % self.t.stages]
        cute.gemm(self.product, self.o, self.weights, values, self.o)
        arch.instruction("wgmma.commit_group")

    def _keys_done(self, number: Any, left: int) -> None:
        """`left`: groups of products that stay under way."""
        arch.instruction("wgmma.wait_group", n=left)
        cute.hold(self.s)
        self.free(1, number)

    def _values_done(self, number: Any) -> None:
        arch.instruction("wgmma.wait_group", n=0)
        cute.hold(self.o, self.p)
        self.free(2, number)

    def _weigh(self, place: Place, step: Any, *, cut: bool, anchored: bool) -> None:
        if cut:
            self.softmax.mask(self.s, place.first, (place.steps - 1 - step) * self.t.keys)
        if anchored:
            self.softmax.weigh_as_before(self.s)
        else:
            self.softmax.weigh(self.s)

    def _rescale(self, *, anchored: bool) -> None:
        if not anchored:
            self.softmax.rescale(self.o, self.product, self.tile)

    def _step(self, place: Place, step: Any, *, cut: bool = False, anchored: bool = False) -> None:
        number = place.before + step
        self._multiply_keys(place, number)
        self._keys_done(number, 0)
        self._weigh(place, step, cut=cut, anchored=anchored)
        self._rescale(anchored=anchored)
        cute.convert(self.s, self.p)
        self._multiply_values(number)
        self._values_done(number)

    def _begin_ahead(self, place: Place) -> None:
        self._multiply_keys(place, place.before)
        self._keys_done(place.before, 0)
        self._weigh(place, 0, cut=True, anchored=False)
        cute.convert(self.s, self.p)

    def _step_ahead(self, place: Place, step: Any, *, cut: bool = False, anchored: bool = False) -> None:
        """The scores of this step and the product of the one before; then this one's softmax, beside that product."""
        number, group, t = place.before + step, self.group, self.t
        if t.in_turns:
            arch.instruction("barrier", group + 1, n=2 * WARPGROUP)
        self._multiply_keys(place, number)
        self._multiply_values(number - 1)
        if t.in_turns:
            arch.instruction("barrier.arrive", (group + 1) % t.consumers + 1, n=2 * WARPGROUP)
        self._keys_done(number, 1)
        self._weigh(place, step, cut=cut, anchored=anchored)
        cute.hold(self.s)
        softmax = self.softmax
        arch.instruction("wgmma.after", self.shared.judged.at(0), softmax.total[0] + softmax.total[1])
        self._values_done(number - 1)
        self._rescale(anchored=anchored)
        cute.convert(self.s, self.p)

    def store(self, place: Place) -> None:
        """Rounds, and writes the rows that the output has."""
        pairs = cute.make_tiled_copy_like(cute.CopyAtom("universal.b32", 16), self.product, "c")
        rows, shape = self.out[place.sequence, None, place.head, None], (self.out.shape[1], self.t.head)

        def part(tensor: Any) -> Any:
            tile = cute.local_tile(tensor, (self.t.rows, self.t.head), (place.tile, 0))
            return cute.partition(self.product, "C", tile, self.worker)

        made = cute.make_fragment(self.o.layout, self.out.dtype)
        cute.convert(self.o, made)
        cute.copy(pairs, made, part(rows), where=part(cute.make_identity_tensor(shape)), inside=shape)
