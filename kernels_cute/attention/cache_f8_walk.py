"""How a block attends to positions of a cache in 8-bit floats: see cache_f8.py.

A warp takes steps of positions, each on its own: straight from global memory to registers, or with `stages` by copies
to a ring in shared memory, which are under way beside earlier steps. With 16 positions, D = 64:

1. Weigh: scores are products of the tensor cores, 8 positions at a time. The order of a head's numbers does not change
   its dot products, so a lane's 16 bytes of a key are what it gives to four products, and the queries are permuted
   alike. One instruction widens two numbers to f16, which has every e4m3.
2. Add: values are A of the product with the weights, whose registers the scores are already in; bytes of two positions
   become a pair of f16. The order of positions does not matter either, so a lane's four lie side by side, in the cache
   and in their scales.

Weights times their values' scales are parts of the largest so far, so f16 keeps the bits of all that count: each is
rounded by 2^-12 of itself, or by 2^-25 of the largest. Queries are divided by a power of two, which loses nothing. Both
are factors of f32 elsewhere. The warps' sums are merged at the end, through shared memory.

Positions behind the token read the token's own position, and weigh nothing: no step is another's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.contract.artifact import MAX_THREADS
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from ..decode.lanes import across, exchange, greatest, of_lane, put, total, vector
from ..registers_f8 import (
    as_float,
    exp2,
    largest_or_nan,
    magnitude,
    pair,
    permuted,
    power_of_two,
    product,
    put_raw,
    quad,
    raw,
    scale_of,
    transposed,
    widened,
)
from .online_softmax import LEAST, LOG2_E, tree

WARP, ROWS, COLUMNS = 32, 8, 64  # ROWS: of a matrix. COLUMNS: of a key that are one load of four lanes
TINY = 1e-30  # no weight at all
FIRST_BYTES, LAST_BYTES = 0x5140, 0x7362  # of two registers by turns


@dataclass(frozen=True)
class Tiles:
    """`head`: numbers of a head. `queries`: of a block, 1 or 8, that share keys. `warps`: of a block. `positions`: of a
    warp's step, a multiple of 16. `span`: positions of a block, 0 for all. `blocks`: of a multiprocessor, a bound on
    registers. `stages`: steps of a warp that its ring holds, 0 for no ring. Raises UsageError."""

    head: int = 64
    queries: int = 1
    warps: int = 4
    positions: int = 16
    span: int = 512
    blocks: int = 6
    stages: int = 0

    def __post_init__(self) -> None:
        if self.head not in (64, 128):
            raise UsageError(f"a head of {self.head} numbers has no kernel here", hint="head=64 or 128")
        if self.queries not in (1, ROWS):
            raise UsageError(f"a block of {self.queries} queries", hint="queries=1 or 8")
        if self.positions % (2 * ROWS) or self.positions < 2 * ROWS:
            raise UsageError(f"a step of {self.positions} positions is no whole product", hint="a multiple of 16")
        if self.stages == 1 or self.stages < 0:
            raise UsageError(f"a ring of {self.stages} stages", hint="2 or more, or 0 for none")
        if self.warps < 1 or self.threads > MAX_THREADS:
            raise UsageError(f"{self.threads} threads", hint=f"1 to {MAX_THREADS // WARP} warps")

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def stage_words(self) -> int:
        """Of a stage in shared memory: keys and values, and their scales."""
        return self.positions * self.head // 2 + 2 * self.positions


class Attention:
    """A block's work: a head of keys of a sequence. Lane 4 i + j has query i of the products' B, columns 2 j and
    2 j + 1 of their sums, and of a step the positions i * `own` and on."""

    def __init__(
        self, t: Tiles, caches: tuple[Any, Any], scales: tuple[Any, ...], sequence: Any, head: Any, position: Any
    ) -> None:
        thread = arch.thread_idx()[0]
        self.t, self.thread, self.warp, self.lane = t, thread, thread // WARP, thread % WARP
        self.i, self.j = self.lane // 4, self.lane % 4
        self.caches, self.scales = caches, [each[sequence, head, None] for each in scales]
        self.sequence, self.head, self.position = sequence, head, position
        self.begun = False
        self.own, self.columns = t.positions // ROWS, min(t.queries, 2)
        self.acc = cute.make_fragment(t.head // 16 * 4, "f32")
        # Of the lane's columns: the maximum so far, the lane's sum of weights, and the unit of `acc`.
        self.most, self.weight, self.unit = (cute.make_fragment(self.columns, "f32") for _ in range(3))
        self.tops = cute.shared_tensor("f32", Layout(t.warps * t.queries * 4))
        self.sums = cute.shared_tensor("f32", Layout(t.warps * t.queries * t.head))

    def take_queries(self, row: Any, scale: Any) -> None:
        """The queries as B of the products, and the factors of their scores. `row`: that of query i; those behind the
        last repeat it."""
        values = list[Any]()
        for part in range(self.t.head // COLUMNS):
            for eight in range(2):
                values += [value.to("f32") for value in vector(row, part * 8 + self.j * 2 + eight, 8)]
        unit = power_of_two(greatest(tree([magnitude(value) for value in values], cute.Scalar.maximum), 1, 2))
        inverse = cute.scalar(1.0) / unit
        self.queries = [pair(values[i] * inverse, values[i + 1] * inverse) for i in range(0, len(values), 2)]
        factor = unit * scale * LOG2_E
        self.factors = [factor]
        if self.columns == 2:
            self.factors = [of_lane(factor, self.j * 8 + 4 * column) for column in range(2)]

    def walk(self, first: Any) -> None:
        """Attends to the block's positions, from `first` on."""
        t = self.t
        cute.fill(self.most, LEAST)
        cute.fill(self.unit, TINY)
        cute.fill(self.weight, 0.0)
        cute.fill(self.acc, 0.0)
        self.end = self.position + 1
        if t.span:
            self.end = self.end.minimum(first + t.span)
        steps = cute.ceil_div(self.end - self.end.minimum(first), t.positions)
        if t.stages:
            self._walk_ring(first, (steps + (t.warps - 1) - self.warp) // t.warps)
            return
        for step in cute.range_(self.warp, steps, t.warps):
            start = step * t.positions + first
            words = self._load(start)
            held = arch.instruction("registers", *words, results=[i32] * len(words))  # all loads before the first use
            self._step(start, [cute.Scalar(word) for word in held])

    def begin(self) -> None:
        """Fetches the warp's first step of a walk from position 0 on, unless the token is in it: what stands before was
        there long before the launch in front of this one."""
        self._make_ring()
        self.begun = True
        start = self.warp * self.t.positions
        with cute.when(self._is_old(start)):
            self._fetch(start, self._slot(0))

    def _is_old(self, start: Any) -> Any:
        """Whether the token is behind a step."""
        return cute.less(start + (self.t.positions - 1), self.position)

    def _make_ring(self) -> None:
        t = self.t
        self.ring = cute.shared_tensor("i32", Layout(t.warps * t.stages * t.stage_words))

    def _walk_ring(self, first: Any, count: Any) -> None:
        """The same of the warp's steps, by copies to its ring in shared memory that are under way beside steps."""
        t = self.t
        if not self.begun:
            self._make_ring()

        def start_of(number: Any) -> Any:
            return (number * t.warps + self.warp) * t.positions + first

        def fetch(number: Any, *wanted: Any) -> None:
            condition = cute.less(number, count)
            for more in wanted:
                condition = cute.both(condition, more)
            with cute.when(condition):
                self._fetch(start_of(number), self._slot(number))
            arch.cp_async_commit_group()

        for number in range(t.stages - 1):
            fetch(number, *([cute.invert(self._is_old(start_of(0)))] if self.begun and not number else []))
        for number in cute.range_(count):
            arch.cp_async_wait_group(t.stages - 2)
            arch.instruction("warp_sync")  # what other lanes have copied; and they have read what is overwritten next
            words = self._read(self._slot(number))
            fetch(number + (t.stages - 1))
            self._step(start_of(number), words)

    def _slot(self, number: Any) -> Any:
        """The first word of the slot of a step."""
        t = self.t
        return (number % t.stages + self.warp * t.stages) * t.stage_words

    def _fetch(self, start: Any, slot: Any) -> None:
        """Starts the copies of a step, 16 bytes each."""
        t = self.t
        along, rows = t.head // 16, t.positions * t.head // 4  # copies of a position, words of keys
        for which, cache in enumerate(self.caches):
            for n in range(t.positions * along // WARP):
                at = self.lane + n * WARP
                source = cute.local_tile(self._row(cache, start + at // along), (16,), (at % along,))
                self._copy(source, slot + which * rows + at * 4)
        with cute.when(cute.less(self.lane, t.positions // 4)):
            for which, scales in enumerate(self.scales):
                four = (start // 4 + self.lane).minimum(self.position // 4)
                self._copy(
                    cute.local_tile(scales, (4,), (four,)), slot + (2 * rows + which * t.positions) + self.lane * 4
                )

    def _copy(self, source: Any, word: Any) -> None:
        target = cute.local_tile(self.ring, (4,), (word // 4,))
        arch.instruction("copy.cp_async", cute.address(target), cute.address(source), atom="L2::128B", n=16)

    def _read(self, slot: Any) -> list[Any]:
        """What `_load` gives, from a slot."""
        t, own, words = self.t, self.own, list[Any]()
        row, rows = t.head // 4, t.positions * t.head // 4  # words
        for x in range(own):
            for part in range(t.head // COLUMNS):
                at = slot + (self.i * own + x) * row + part * 16
                words += vector(self.ring, at // 4 + self.j, 4)
        size = t.head // (4 * ROWS)
        for x in range(0, own, 2):
            for column in (x, x + own, x + 1, x + 1 + own):
                at = slot + rows + (self.j * (2 * own) + column) * row
                words += vector(self.ring, at // size + self.i, size)
        for which in range(2):
            size = min(own, 4)
            at = slot + (2 * rows + which * t.positions) + self.i * own
            for part in range(own // size):
                words += vector(self.ring, at // size + part, size)
        return words

    def _load(self, start: Any) -> list[Any]:
        """A step's keys and values, and their scales, as they are stored."""
        (keys, values), words = self.caches, list[Any]()
        for x in range(self.own):
            row = self._row(keys, start + (self.i * self.own + x))
            for part in range(self.t.head // COLUMNS):
                words += raw(row, part * 4 + self.j, 16)
        for x in range(0, self.own, 2):
            for column in (x, x + self.own, x + 1, x + 1 + self.own):  # two rows of weights, and the two behind them
                row = self._row(values, start + (self.j * (2 * self.own) + column))
                words += raw(row, self.i, self.t.head // ROWS)
        return words + [word for scales in self.scales for word in self._scales(scales, start)]

    def _row(self, cache: Any, position: Any) -> Any:
        return cache[self.sequence, position.minimum(self.position), self.head, None]

    def _scales(self, scales: Any, start: Any) -> list[Any]:
        """Those of the lane's positions."""
        size = min(self.own, 4)
        first, last = (start + self.i * self.own) // size, self.position // size
        parts = [(first + part).minimum(last) for part in range(self.own // size)]
        return [word for part in parts for word in raw(scales, part, size * 4)]

    def _step(self, start: Any, words: list[Any]) -> None:
        t, own = self.t, self.own
        count = t.positions * t.head // (4 * WARP)
        keys, values = words[:count], words[count : 2 * count]
        key_scales, value_scales = (
            [as_float(word) for word in each] for each in (words[-2 * own : -own], words[-own:])
        )
        there = [cute.less(start + (self.i * own + x), self.end) for x in range(own)]
        scores = self._scores(keys)
        weighted, kept = list[list[Any]](), list[Any]()
        for column, factor in enumerate(self.factors):
            seen = [
                cute.select(is_there, score[column] * (scale * factor), float("-inf"))
                for is_there, score, scale in zip(there, scores, key_scales, strict=True)
            ]
            most = self.most[column].maximum(self._of_step(seen))
            fall = exp2(self.most[column] - most)
            weights = [exp2(score - most) for score in seen]
            self.weight[column] = self.weight[column].fma(fall, total(list(weights)))
            self.most[column] = most
            parts = [
                cute.select(is_there, weight * scale, 0.0)
                for is_there, weight, scale in zip(there, weights, value_scales, strict=True)
            ]
            before = self.unit[column] * fall
            unit = before.maximum(self._of_step(parts)).maximum(TINY)
            inverse = cute.Scalar(arch.instruction("reciprocal", unit, results=[f32])[0])
            self.unit[column] = unit
            weighted.append([part * inverse for part in parts])
            kept.append(before * inverse)
        b = [transposed(pair(weighted[0][x], weighted[-1][x])) for x in range(own)]
        self._add(values, b, kept)

    def _of_step(self, values: list[Any]) -> Any:
        """The maximum over a step's positions."""
        return greatest(tree(list(values), cute.Scalar.maximum), 4, 8, 16)

    def _scores(self, words: list[Any]) -> list[list[Any]]:
        """For each of the lane's positions the products of its columns, of keys as A."""
        count, made = self.t.head // 16, list[list[Any]]()  # registers of a key
        for x in range(0, self.own, 2):
            rows = [words[(x + i) * count : (x + i + 1) * count] for i in range(2)]
            sums = [cute.scalar(0.0)] * 4
            for n in range(count):
                (low, high), (low_8, high_8) = (widened(row[n]) for row in rows)
                sums = product([low, low_8, high, high_8, *self.queries[2 * n : 2 * n + 2]], sums)
            made += [sums[:2], sums[2:]]
        return made

    def _add(self, words: list[Any], b: list[Any], kept: list[Any]) -> None:
        """Adds weighted values, as A of the products, to what is kept of the sums."""
        count = self.t.head // (4 * ROWS)  # registers of a position
        for i in range(cute.size(self.acc.layout)):
            self.acc[i] = self.acc[i] * kept[i % 2 % len(kept)]
        for x in range(0, self.own, 2):
            rows = [words[(x * 2 + i) * count : (x * 2 + i + 1) * count] for i in range(4)]
            for n in range(count):
                for half, order in enumerate((FIRST_BYTES, LAST_BYTES)):
                    a = [word for i in (0, 2) for word in widened(permuted(rows[i][n], rows[i + 1][n], order))]
                    at = 4 * (2 * n + half)
                    made = product([*a, *b[x : x + 2]], [self.acc[at + i] for i in range(4)])
                    for i, value in enumerate(made):
                        self.acc[at + i] = value

    def merge(self, queries: Any, write: Any) -> None:
        """What the warps have found, together. `write`: gets the query, the column, the weighted sum, the maximum that
        weights are relative to, and their sum."""
        t, own = self.t, self.t.head // ROWS  # numbers of a head
        for column in range(self.columns):
            query = self.j * 2 + column
            (weight,) = across([self.weight[column]], 4, 8, 16)
            with cute.when(cute.less(query, t.queries)):
                row = self.warp * t.queries + query
                with cute.when(cute.same(self.i, 0)):
                    put(self.tops, row, [self.most[column], weight, self.unit[column], cute.scalar(0.0)])
                numbers = [self.acc[n * 4 + 2 * half + column] for n in range(own // 2) for half in range(2)]
                for four in range(own // 4):
                    put(self.sums, (row * ROWS + self.i) * (own // 4) + four, numbers[four * 4 : four * 4 + 4])
        arch.sync_threads()
        for element in cute.range_(self.thread, queries * t.head, t.threads):
            query, number = element // t.head, element % t.head
            rows = [warp * t.queries + query for warp in range(t.warps)]
            tops = [vector(self.tops, row, 4) for row in rows]
            most = tree([top[0] for top in tops], cute.Scalar.maximum)
            falls = [exp2(top[0] - most) for top in tops]
            weight = total([top[1] * fall for top, fall in zip(tops, falls, strict=True)])
            sums = [
                self.sums[row * t.head + number] * (top[2] * fall)
                for row, top, fall in zip(rows, tops, falls, strict=True)
            ]
            write(query, number, total(sums), most, weight)

    def unsplit(self, q: Any, k: Any, v: Any, out: Any, scale: Any) -> None:
        """One query, behind the launch before: appends its key and value, and divides what it makes of all positions.
        `q`, `k`, `v`, `out` (B, H, D)."""
        arch.grid_wait()
        arch.instruction("grid_launch")  # the product behind may fetch its weights
        self.append([new[self.sequence, self.head, None] for new in (k, v)])
        self.take_queries(q[self.sequence, self.head, None], scale)
        self.walk(0)

        def write(_: Any, number: Any, sums: Any, most: Any, weight: Any) -> None:
            del most
            out[self.sequence, self.head, number] = (sums / weight).to(out.dtype)

        self.merge(1, write)

    def append(self, new: list[Any]) -> None:
        """Rounds the token's key and value to the cache, by the warp that reads them."""
        t = self.t
        with cute.when(cute.same(self.position // t.positions % t.warps, self.warp)):
            for head, cache, scales in zip(new, self.caches, self.scales, strict=True):
                lanes = t.head // 4
                values = [value.to("f32") for value in vector(head, self.lane % lanes, 4)]
                largest = tree([magnitude(value) for value in values], largest_or_nan)
                for bit in (1 << i for i in range(5) if 1 << i < lanes):
                    largest = largest_or_nan(largest, exchange(largest, bit))
                scale = scale_of(largest)
                inverse = cute.scalar(1.0) / scale
                word = quad([value * inverse for value in values])
                with cute.when(cute.less(self.lane, lanes)):
                    put_raw(self._row(cache, self.position), self.lane, word)
                with cute.when(cute.same(self.lane, 0)):
                    scales[self.position] = scale
            arch.instruction("warp_sync")
