"""Attention of one token to all of a cache in bf16 at once, for sm_90: the op `decode_attention_unsplit`.

As cache_f8.py: each warp takes steps of positions, through a ring of its own in shared memory. All that the ring holds
is under way before the launches in front end, for what stands before the token was there long before.

A row of a head is 8 pieces of 16 bytes. Piece p of row r lies at p ^ (r / 2 % 8), so that lanes that read at one time
find theirs in different banks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.errors import UsageError

from ..decode.block import as_number, as_scalar
from ..decode.lanes import put, total, vector
from ..products.epilogues import VECTOR, parameters
from ..registers_f8 import exp2, permuted, raw, transposed
from . import cache_f8_walk
from .cache_f8_walk import WARP
from .online_softmax import LOG2_E

OP = "decode_attention_unsplit"
HEAD, PIECES = 64, 8  # numbers of a head, pieces of a row
PIECE = 4  # registers of a piece
PRODUCT = "mma.m16n8k16.f32.bf16"
LOW, HIGH = 0x5410, 0x7632  # halves of two registers


@dataclass(frozen=True)
class Tiles(cache_f8_walk.Tiles):
    """A ring for all of a cache of heads of 64 numbers, one query each. Raises UsageError for others."""

    span: int = 0
    stages: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head != HEAD or self.queries != 1 or self.span or not self.stages:
            raise UsageError(f"{self} is no ring for one query of {HEAD} numbers and all of a cache")

    @property
    def stage_words(self) -> int:
        return self.positions * HEAD


class Attention(cache_f8_walk.Attention):
    """A block's work: a head of a sequence."""

    t: Tiles

    def take_queries(self, row: Any, scale: Any) -> None:
        """The query as B of the products: a lane has its numbers 16 j to 16 j + 15."""
        self.queries = [word for half in range(2) for word in raw(row, self.j * 2 + half, 16)]
        self.factor = scale * LOG2_E

    def begin(self) -> None:
        """Fetches what the ring holds, but for a step that the token is in."""
        t = self.t
        self._make_ring()
        self.begun = True
        for number in range(t.stages):
            start = self._start(number)
            with cute.when(self._is_old(start)):
                self._fetch(start, self._slot(number))

    def _start(self, number: Any) -> Any:
        """The first position of a step of the warp."""
        return (number * self.t.warps + self.warp) * self.t.positions

    def _walk_ring(self, first: Any, count: Any) -> None:
        del first  # 0
        t = self.t
        for number in range(t.stages):
            start = self._start(number)
            with cute.when(cute.both(cute.less(number, count), cute.invert(self._is_old(start)))):
                self._fetch(start, self._slot(number))
        for _ in range(t.stages):  # one group for all of them, and empty ones for the wait to count
            arch.cp_async_commit_group()
        for number in cute.range_(count):
            arch.cp_async_wait_group(t.stages - 1)
            arch.instruction("warp_sync")  # what other lanes have copied
            words = self._read(self._slot(number))
            words = [cute.Scalar(word) for word in arch.instruction("registers", *words, results=[i32] * len(words))]
            arch.instruction("warp_sync")  # they have read what is overwritten next
            with cute.when(cute.less(number + t.stages, count)):
                self._fetch(self._start(number + t.stages), self._slot(number))
            arch.cp_async_commit_group()
            self._step(self._start(number), words)

    def _fetch(self, start: Any, slot: Any) -> None:
        for which, cache in enumerate(self.caches):
            for n in range(self.t.positions * PIECES // WARP):
                at = self.lane + n * WARP
                row, piece = at // PIECES, at % PIECES
                source = cute.local_tile(self._row(cache, start + row), (HEAD // PIECES,), (piece,))
                self._copy(source, slot + which * self.t.stage_words // 2 + self._place(row, piece))

    def _place(self, row: Any, piece: Any) -> Any:
        """The first word of a piece in a slot."""
        a, b = as_scalar(piece), as_scalar(row // 2 % PIECES)
        moved = as_number(cute.Scalar(cute.current().insert(arith.XOrIOp(a.value, b.value)).result))
        return (row * PIECES + moved) * PIECE

    def _read(self, slot: Any) -> list[Any]:
        own, words = self.own, list[Any]()
        for x in range(own):
            for half in range(2):
                at = slot + self._place(self.i * own + x, self.j * 2 + half)
                words += vector(self.ring, at // PIECE, PIECE)
        for x in range(0, own, 2):
            for column in (x, x + own, x + 1, x + 1 + own):
                at = slot + self.t.stage_words // 2 + self._place(self.j * (2 * own) + column, self.i)
                words += vector(self.ring, at // PIECE, PIECE)
        return words

    def _step(self, start: Any, words: list[Any]) -> None:
        own = self.own
        keys, values = words[: len(words) // 2], words[len(words) // 2 :]
        there = [cute.less(start + (self.i * own + x), self.end) for x in range(own)]
        seen = [
            cute.select(is_there, score[0] * self.factor, float("-inf"))
            for is_there, score in zip(there, self._scores(keys), strict=True)
        ]
        most = self.most[0].maximum(self._of_step(seen))
        fall = exp2(self.most[0] - most)
        weights = [exp2(score - most) for score in seen]
        self.weight[0] = self.weight[0].fma(fall, total(list(weights)))
        self.most[0] = most
        self._add(values, [transposed(_pair(weight, weight)) for weight in weights], [fall])

    def _scores(self, words: list[Any]) -> list[list[Any]]:
        count, made = HEAD // 8, list[list[Any]]()  # registers of a key
        for x in range(0, self.own, 2):
            rows = [words[(x + i) * count : (x + i + 1) * count] for i in range(2)]
            sums = [cute.scalar(0.0)] * 4
            for n in range(0, count, 2):
                a = [row[n + half] for half in range(2) for row in rows]
                sums = _product([*a, *self.queries[n : n + 2]], sums)
            made += [sums[:2], sums[2:]]
        return made

    def _add(self, words: list[Any], b: list[Any], kept: list[Any]) -> None:
        for i in range(cute.size(self.acc.layout)):
            self.acc[i] = self.acc[i] * kept[0]
        for x in range(0, self.own, 2):
            rows = [words[(x * 2 + i) * PIECE : (x * 2 + i + 1) * PIECE] for i in range(4)]
            for n in range(PIECE):
                a = [permuted(rows[i][n], rows[i + 1][n], order) for i in (0, 2) for order in (LOW, HIGH)]
                made = _product([*a, *b[x : x + 2]], [self.acc[4 * n + i] for i in range(4)])
                for i, value in enumerate(made):
                    self.acc[4 * n + i] = value

    def merge(self, queries: Any, write: Any) -> None:
        cute.fill(self.unit, 1.0)
        super().merge(queries, write)

    def append(self, new: list[Any]) -> None:
        """Stores the token's key and value, by the warp that reads them."""
        with cute.when(cute.same(self.position // self.t.positions % self.t.warps, self.warp)):
            with cute.when(cute.less(self.lane, PIECES)):
                for head, cache in zip(new, self.caches, strict=True):
                    put(self._row(cache, self.position), self.lane, vector(head, self.lane, HEAD // PIECES))
            arch.instruction("warp_sync")


def unsplit(tiles: Tiles | None = None, name: str = OP) -> cute.Kernel:
    """The kernel of `decode_attention_unsplit` in bf16, in the grid (H, B)."""
    t = tiles or Tiles()

    @cute.kernel(*parameters(OP, "bf16", VECTOR), threads=t.threads, name=name, min_blocks=t.blocks)
    def kernel(q: Any, k: Any, v: Any, positions: Any, k_cache: Any, v_cache: Any, out: Any, scale: Any) -> None:
        head, sequence, _ = arch.block_idx()
        position = as_number(positions[sequence])
        attention = Attention(t, (k_cache, v_cache), (), sequence, head, position)
        attention.begin()
        attention.unsplit(q, k, v, out, scale)

    return kernel


def _pair(a: Any, b: Any) -> Any:
    return cute.Scalar(arch.instruction("convert.pair", a, b, results=[i32], atom="bf16")[0])


def _product(operands: list[Any], sums: list[Any]) -> list[Any]:
    return [
        cute.Scalar(each) for each in arch.instruction("mma.sync", *operands, *sums, results=[f32] * 4, atom=PRODUCT)
    ]
