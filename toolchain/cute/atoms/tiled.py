"""Tiled atoms: an atom repeated over threads and values, and how a tensor is divided among the threads.

`partition` is the one function: a tile's layout becomes a layout of the thread (its offset) and a layout of the values
that the thread holds. Kernels, `cute.copy` and `cute.gemm` derive all of their loops from it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError
from ..layout import (
    Layout,
    coalesce,
    composition,
    left_inverse,
    logical_divide,
    make_layout,
    raked_product,
    right_inverse,
    size,
    zipped_divide,
)
from ..layout import tuples as nested
from .copy_atom import CopyAtom
from .mma import MmaAtom

# The modes of (M, N, K) that an operand has. E, the metadata of a sparse A, has a row for each thread of an atom, and
# a column for each step along K.
MODES = {"a": (0, 2), "b": (1, 2), "c": (0, 1), "e": (0, 2)}
Part = tuple[Layout, Layout]  # a thread's number -> the offset of its first value; its values


@dataclass(frozen=True)
class TiledMma:
    """`threads`: the layout of atoms over (M, N, K), which numbers the groups of threads. `permutation`: for each of
    M, N and K the size or the layout of the tile that all threads cover at once, or None: no more than the atoms."""

    atom: MmaAtom
    threads: Layout
    permutation: tuple[Any, Any, Any] = (None, None, None)

    def __post_init__(self) -> None:
        if len(self.threads) != 3:
            raise UsageError(f"{self.threads}: atoms are laid out over three modes, M, N and K")
        for mode, whole in enumerate(self.tile):
            if whole % self._atoms(mode):
                raise UsageError(f"{self.atom.name}: a tile of {whole} is no whole number of atoms along {'MNK'[mode]}")

    @property
    def thread_count(self) -> int:
        return self.atom.threads * size(self.threads)

    @property
    def tile(self) -> tuple[int, int, int]:
        """M, N and K of what all threads compute at once."""
        m, n, k = (self._atoms(mode) if p is None else _extent(p) for mode, p in enumerate(self.permutation))
        return m, n, k

    def _atoms(self, mode: int) -> int:
        return (self.atom.m, self.atom.n, self.atom.k)[mode] * size(self.threads[mode])

    def extents(self, operand: str) -> tuple[int, ...]:
        """The sizes of an operand's tile: less than M and K for a sparse A, and for its metadata."""
        atom, whole = self.atom, (self.atom.m, self.atom.n, self.atom.k)
        parts = zip(MODES[operand], atom.tile(operand), strict=True)
        return tuple(self.tile[mode] // whole[mode] * part for mode, part in parts)

    def tiler(self, operand: str) -> tuple[Any, ...]:
        """The tile of an operand as a tiler. Raises UsageError for a permutation that would mix a sparse A's chunks."""
        whole = [self.tile[mode] for mode in MODES[operand]]
        made = list[Any](self.extents(operand))
        for i, mode in enumerate(MODES[operand]):
            if isinstance(layout := self.permutation[mode], Layout):
                if made[i] != whole[i]:
                    raise UsageError(f"{self.atom.name}: {layout} permutes a mode that operand {operand} packs")
                made[i] = layout
        return tuple(made)

    @functools.cache  # noqa: B019 - a frozen value, and few of them
    def thread_values(self, operand: str) -> Layout:
        """(thread, (value, atom, atom)) to the index in the operand's tile, column-major."""
        modes = MODES[operand]
        whole = Layout(self.extents(operand))
        within, atoms = zipped_divide(whole, self.atom.tile(operand))
        atom = composition(within, self.atom.held(operand))
        groups, rest = zipped_divide(atoms, tuple(size(self.threads[m]) for m in modes))
        steps = [Layout(size(self.threads[m]), 0) for m in range(3)]
        for mode, group in zip(modes, groups, strict=True):
            steps[mode] = group
        numbered = make_layout(Layout(self.atom.threads), *_scaled(self.threads, self.atom.threads))
        thread = composition(make_layout(atom[0], *steps), right_inverse(numbered))
        return make_layout(thread, make_layout(atom[1], *rest))

    def partition(self, operand: str, tensor: Layout) -> Part:
        """A tensor (M, K), (N, K) or (M, N), or with more modes behind, among the threads. A sparse A is (M, K/2), and
        its metadata (M / atom's M * atom's threads, K / atom's K).

        The values are (value of the atom, atoms along the first mode, along the second, other modes).
        """
        made = zipped_divide(tensor, self.tiler(operand))
        thread, values = composition(made[0], self.thread_values(operand))
        value, *repeats = values
        rest = list(made[1])
        joined = [_joined(inner, outer) for inner, outer in zip(repeats, rest[:2], strict=True)]
        return thread, make_layout(value, *joined, *rest[2:])


@dataclass(frozen=True)
class TiledCopy:
    """`thread_values`: (thread, value) to the index in the tile, column-major, for the atom's reference side. `tiler`:
    the tile that all threads move at once."""

    atom: CopyAtom
    thread_values: Layout
    tiler: tuple[Any, ...]

    @property
    def thread_count(self) -> int:
        return size(self.thread_values[0])

    @functools.cache  # noqa: B019 - a frozen value, and few of them
    def side(self, which: str) -> Layout:
        """(thread, (value of the atom, other values)) to the index in the tile, for side `S` or `D`."""
        reference = self.atom.reference
        counts = (size(reference[0]), size(reference[1]))
        if size(self.thread_values[0]) % counts[0] or size(self.thread_values[1]) % counts[1]:
            raise UsageError(f"{self.atom.name} takes {counts[0]} threads and {counts[1]} values; {self.thread_values}")
        within, rest = zipped_divide(self.thread_values, counts)
        atom = composition(within, self.atom.to_reference(self.atom.source if which == "S" else self.atom.target))
        return make_layout(coalesce(make_layout(atom[0], rest[0])), make_layout(atom[1], coalesce(rest[1])))

    def partition(self, which: str, tensor: Layout) -> Part:
        """A tensor among the threads, as source (`S`) or destination (`D`).

        The values are ((value of the atom, other values), tiles along each mode).
        """
        made = zipped_divide(tensor, self.tiler)
        thread, values = composition(made[0], self.side(which))
        return thread, make_layout(values, *made[1])


def _extent(part: Any) -> int:
    return size(part) if isinstance(part, Layout) else part


def _scaled(layout: Layout, factor: int) -> list[Layout]:
    def scaled(stride: Any) -> Any:
        return stride * factor

    return [Layout(mode.shape, nested.transform(scaled, mode.stride)) for mode in layout]


def _joined(inner: Layout, outer: Layout) -> Layout:
    """Atoms within the tile, and the tiles, as one mode."""
    if size(inner) == 1:
        return outer
    return coalesce(make_layout(inner, outer)) if size(outer) != 1 else inner


def make_tiled_mma(atom: MmaAtom, threads: Layout | Sequence[int], permutation: Sequence[Any] = ()) -> TiledMma:
    """Atoms over groups of threads: `(2, 2, 1)` is 2 x 2 groups. Raises UsageError."""
    layout = threads if isinstance(threads, Layout) else Layout(tuple(threads))
    filled = (*permutation, None, None, None)
    return TiledMma(atom, layout, (filled[0], filled[1], filled[2]))


def make_tiled_copy(atom: CopyAtom, threads: Layout, values: Layout) -> TiledCopy:
    """A copy in which a layout of threads over a tile moves a layout of values each: value after value within a thread,
    then thread after thread."""
    whole = raked_product(threads, values)
    counts = (size(threads), size(values))
    return TiledCopy(atom, composition(right_inverse(whole), Layout(counts)), tuple(size(mode) for mode in whole))


def make_tiled_copy_like(atom: CopyAtom, mma: TiledMma, operand: str) -> TiledCopy:
    """A copy whose reference side holds what the threads of a tiled MMA hold of operand `a`, `b` or `c`."""
    made = mma.thread_values(operand)
    return TiledCopy(atom, make_layout(coalesce(made[0]), coalesce(made[1])), mma.tiler(operand))


def retile(copied: Layout, computed: Layout, registers: Layout) -> Layout:
    """The registers of an MMA fragment in the order of a copy's values.

    `copied`, `computed`: the values of thread 0 of one tile with known numbers, by the copy and by the MMA.
    `registers`: the layout of the fragment. Raises LayoutError if the copy reaches other elements than the MMA.
    """
    return composition(registers, composition(left_inverse(computed), copied))


def accumulator_as_a(sums: Layout) -> Layout:
    """The layout by which the registers of an accumulator, rounded to 16 bits, are A of a product along its columns.

    `sums`: (value, M, N) of `wgmma` or of m16n8; the result is (value, M, K) of `wgmma_rs` or of m16n8k16. In both a
    thread holds the same elements. Raises UsageError for another layout.
    """
    value, rows, columns = sums
    parts, pair = list(value), Layout(2, 1)
    if len(parts) == 2 and size(columns) % 2 == 0:  # two atoms of m16n8 side by side are 16 columns
        pairs, others = logical_divide(columns, pair)
        return make_layout(make_layout(*parts, pairs), rows, others)
    if len(parts) == 3 and size(parts[2]) % 2 == 0:
        pairs, others = logical_divide(parts[2], pair)
        return make_layout(make_layout(*parts[:2], pairs), rows, coalesce(make_layout(others, columns)))
    raise UsageError(f"{sums} is no accumulator whose columns are pairs of 8")
