"""Products of rows of weights with x by the computing warps, and what makes results of them behind a norm: what a step
of one text and one of several have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch

from .block import Place
from .lanes import CHUNK, COLUMNS, ROWS, Across
from .plan import HEAD
from .team import Team


class Rows(Team, ABC):
    """Each warp has 64 columns of x."""

    def __init__(self, here: Place, vectors: dict[str, Any], sums: Any, launches: Any, eps: Any) -> None:
        """`vectors`: biases, scales, and what else there is a number of for each row or column of a layer's weight."""
        super().__init__(here, sums, launches)
        self.vectors, self.eps = vectors, eps

    @abstractmethod
    def read_tiles(self, at: Sequence[Any], bits: int) -> list[Any]:
        """One or two tiles of 8 rows and the warp's columns. `at`: their first chunks."""

    @abstractmethod
    def multiply(self, tiles: list[Any], x: Any, bits: int) -> list[Any]:
        """What the lane has of each tile's products with x."""

    def of_layer(self, name: str, layer: Any, number: Any) -> Any:
        """A number of a vector, of a layer, as it is stored."""
        return self.vectors[name][layer * self.size_of(name) + number]

    def size_of(self, name: str) -> int:
        """How many numbers a layer has of a vector."""
        s = self.step
        return {"qkv": 3 * s.heads * HEAD, "fc": s.hidden}.get(name.split("_")[0], s.width)

    def tiles(self, first: Any, count: int, x: Any, bits: int, meanwhile: Across | None = None) -> list[Any]:
        """The products of tiles of 8 rows with the warp's columns of x, two tiles at a time. The next two are read
        before these are multiplied."""
        each, width = 16 // bits, self.step.width
        pairs = [range(i, min(i + 2, count)) for i in range(0, count, 2)]
        of_warp = self.warp * (ROWS * COLUMNS // 16 if each > 1 else COLUMNS // CHUNK)

        def read(two: range) -> list[Any]:
            for slot in dict.fromkeys(tile // each for tile in two):
                self.here.full.wait(first + slot)
            at = [
                self.here.chunk(first + tile // each) + tile % each * (width // each) + of_warp for tile in two
            ]  # fmt: skip
            return self.read_tiles(at, bits)

        made, ahead = list[Any](), read(pairs[0])
        for i, two in enumerate(pairs):
            now, ahead = ahead, read(pairs[i + 1]) if i + 1 < len(pairs) else []
            if meanwhile:
                meanwhile.step()
            made += self.multiply(now, x, bits)
            if meanwhile:
                meanwhile.step()
            arch.instruction("warp_sync")
            with cute.when(cute.same(self.lane, 0)):
                for slot in dict.fromkeys(tile // each for tile in two):
                    self.here.free.arrive(first + slot)
        return made

    def behind_norm(self, square: Any, mean: Any, root: Any) -> tuple[tuple[Any, Any], Any, Any]:
        """Of a norm whose weight is not in the products', what `result` wants, and what the next x is to be multiplied
        with and was divided by then. `square`, `mean`: of x; `root`: what this x was divided by."""
        deviation = square - mean * mean + self.eps
        scale = self.rsqrt(deviation)
        factor, root = scale * root, deviation * scale
        return (factor, mean * scale), scale, root

    def result(self, sum_: Any, norm: tuple[Any, Any], terms: Sequence[Any]) -> Any:
        """What a row's product is, from its sum and its `terms`. `norm`: what the sum is to be multiplied with, and
        what is to be taken from it for each unit of the weight's sum."""
        factor, mean = norm
        if self.step.folded:
            return sum_.fma(factor, terms[0])
        bias, scale, of_mean = terms
        return (sum_ * factor - mean * of_mean).fma(scale, bias)


class Terms:
    """What the products of rows are made results with: biases; in 8 bits also scales, and sums, which are what the mean
    of x gives."""

    def __init__(self, w: Rows, product: str, count: int) -> None:
        self._w, kinds = w, ("bias",) if w.step.folded else ("bias", "scales", "sums")
        self._held = {
            name: cute.make_fragment(count, w.vectors[name].dtype) for name in (f"{product}_{k}" for k in kinds)
        }
        for held in self._held.values():
            cute.fill(held, 0.0)

    def read(self, at: int, layer: Any, number: Any) -> None:
        """Reads those of a row of a layer."""
        for name, held in self._held.items():
            held[at] = self._w.of_layer(name, layer, number)

    def values(self, at: int) -> list[Any]:
        """Bias, and scale and sum."""
        return [held[at].to("f32") for held in self._held.values()]
