"""Scales and biases of a tile of a product for sm_90a, in shared memory.

A thread needs one of each for every few sums. If it read them from global memory when the sums are ready, each part of
a tile would wait for the L2 cache, which loads of x and of the weight keep busy. So a warpgroup reads those of its tile
beside the product, each once, and its threads find them in shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.dsl.values import TensorValue
from toolchain.cute.layout import Layout

from .epilogues import Operands
from .tiles_sm90 import WARPGROUP, Tiles

ROWS, COLUMNS = ("M",), ("N",)


@dataclass(frozen=True)
class Fetched:
    """An element on its way to shared memory. `index`: its place in `target`; `threads`: so many have one."""

    target: TensorValue
    index: Any
    value: Any
    threads: int


class Vectors:
    """An op's operands along rows (M) and columns (N), of the tile that a warpgroup computes. `worker`: the number of a
    thread in its warpgroup."""

    def __init__(self, t: Tiles, op: str, operands: Operands) -> None:
        self.t, self.operands = t, operands
        self.dims: Mapping[str, tuple[str, ...]] = {
            param.name: tuple(param.dims)
            for param in ops()[op].params
            if param.role != "output" and tuple(param.dims) in (ROWS, COLUMNS)
        }
        self.held: dict[str, TensorValue] = {}
        for name, dims in self.dims.items():
            length = t.m if dims == ROWS else t.columns_held
            layout = Layout((length, t.consumers), (1, length))
            self.held[name] = cute.shared_tensor(operands[name].dtype, layout)

    def of(self, consumer: Any) -> dict[str, Any]:
        """The operands for a warpgroup's epilogue: these vectors begin with the tile."""
        return {**self.operands, **{name: held[None, consumer] for name, held in self.held.items()}}

    def fetch(self, at: tuple[Any, Any], consumer: Any, worker: Any) -> list[Fetched]:
        """Begins to read those of the tile at a row and column of tiles; beyond the output the last one stands."""
        t, fetched = self.t, list[Fetched]()
        rows = t.m // t.groups
        for name, dims in self.dims.items():
            source, (row, column) = self.operands[name], at
            if dims == ROWS:
                begin, first, count = row * t.m, consumer * rows if t.groups > 1 else 0, rows
            else:
                begin, first, count = column * t.n, 0, t.columns_held
            for turn in range(-(-count // WARPGROUP)):
                index = first + worker + turn * WARPGROUP
                inside = (begin + index).minimum(source.shape - 1)
                fetched.append(Fetched(self.held[name], index, source[inside], min(count, WARPGROUP)))
        return fetched

    def keep(self, fetched: list[Fetched], consumer: Any, worker: Any) -> None:
        """Writes what has come to shared memory; the warpgroup meets before it reads there."""
        for each in fetched:
            with cute.when(cute.less(worker, each.threads)) if each.threads < WARPGROUP else nullcontext():
                each.target[each.index, consumer] = each.value
