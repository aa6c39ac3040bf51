"""Loads of tiles to shared memory, with cp.async or, where rows are not aligned, through registers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.layout import Layout


@dataclass(frozen=True)
class Loads:
    """A thread's loads of an operand of a shape (rows, K). `sources`: the operand, and the same from its second tile
    along K on. `at`: the number of the block's tile along the rows. `rest`: the steps of K of the first tile; `tiles`:
    how many there are along K."""

    load: Any
    sources: tuple[Any, Any]
    shared: Any
    tile: tuple[int, int]
    shape: tuple[Any, Any]
    at: Any
    rest: Any
    tiles: Any
    thread: Any

    def first(self) -> None:
        """Loads the first tile."""
        here = self.tile, (self.at, 0)
        source = self._part(cute.local_tile(self.sources[0], *here))
        where = self._part(cute.local_tile(cute.make_identity_tensor(self.shape), *here))
        load_tile(self.load, source, self._target(0), where, (self.shape[0], self.rest.minimum(self.shape[1])))

    def whole(self, number: Any, stage: Any) -> None:
        """Loads a tile behind the first."""
        load_tile(self.load, *self._whole(number, stage))

    def apart(self, number: Any, stage: Any) -> list[Callable[[], None]]:
        """Functions that load a tile behind the first: one for each cp.async, or one for all through registers."""
        source, *rest, inside = self._whole(number, stage)
        if not self.load.atom.is_async:
            return [partial(load_tile, self.load, source, *rest, inside)]
        _, across, down = (cute.size(Layout(extent)) for extent in source.shape)
        each = [(None, i, j) for j in range(down) for i in range(across)]
        return [partial(load_tile, self.load, *(part[one] for part in (source, *rest)), inside) for one in each]

    def _whole(self, number: Any, stage: Any) -> tuple[Any, Any, Any, Any]:
        """Source, target, coordinates and their bound. A tile behind the first is whole or behind the end of K, so its
        number says for all steps of K."""
        inside = self.shape[0], self.tiles
        rows = cute.local_tile(cute.make_identity_tensor(inside), (self.tile[0], 1), (self.at, number + 1))
        where = self._part(cute.with_layout(rows, Layout(self.tile, (1, 0))))
        return (
            self._part(cute.local_tile(self.sources[1], self.tile, (self.at, number))),
            self._target(stage),
            where,
            inside,
        )

    def _part(self, tensor: Any) -> Any:
        return cute.partition(self.load, "S", tensor, self.thread)

    def _target(self, stage: Any) -> Any:
        return cute.partition(self.load, "D", self.shared[None, None, stage], self.thread)


def load_tile(load: Any, source: Any, target: Any, where: Any, inside: Any) -> None:
    """Brings a thread's part of a tile to shared memory, with zeros outside of the array: asynchronously, or element
    by element through registers, which hold zero where nothing is read."""
    if load.atom.is_async:
        cute.copy(load, source, target, where=where, inside=inside)
        return
    held = cute.make_fragment(source.layout.shape, source.dtype)
    cute.copy(load, source, held, where=where, inside=inside)
    cute.copy(load, held, target)
