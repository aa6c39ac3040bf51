"""Rows of the residual stream that are shared out to ranks, so that products hide what ranks send each other.

Each of R ranks adds up a piece of the rows, N / R of them, and has a copy of all. `linear_to_ranks` adds a product to
the own piece, and stores the rows' sums of squares to all ranks. What reads it begins with the own piece, and stores
that to all ranks meanwhile; of many rows copy engines do, which takes nothing from the multiprocessors. So all norms
within the layers have to be part of the products behind them: the model is folded (see fold.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.contract.expressions import cdiv
from toolchain.runtime import DeviceBuffer, Launcher

from ..config import GPTConfig

OPS = ("linear_to_ranks", "rms_linear_of_ranks", "rms_linear_gelu_of_ranks")
COPIED_ROWS = 4096  # of a pass, from which on copy engines send rows: below, products that send take less
MANY_ROWS = 8192  # of a pass, from which on products of larger tiles are the fastest
PARTS = {False: 128, True: 160}  # columns of a part of the squares, which a tile sums up; for many rows or not


@dataclass(frozen=True)
class Spread:
    """`stream` (R, N, C), `squares` (R, Z, N) f32 and `arrived` (R, R, N / R, C) in the memory of all ranks; `flags`:
    what their products take of the channel."""

    stream: DeviceBuffer
    squares: DeviceBuffer
    arrived: DeviceBuffer
    flags: Mapping[str, DeviceBuffer | float]

    def of(self, op: str) -> dict[str, DeviceBuffer | float]:
        """What an op takes of all this."""
        if op == OPS[0]:
            return {"out": self.stream, "squares": self.squares, "arrived": self.arrived, **self.flags}
        waits = {name: self.flags[name] for name in ("ended", "state", "rank")}
        return {"x": self.stream, "squares": self.squares, "sends": int(not self.copies), **waits}

    @property
    def copies(self) -> bool:
        """Whether copy engines send rows, not the products that read them."""
        return self.stream.shape[1] >= COPIED_ROWS

    def made(self) -> None:
        """Behind linear_to_ranks: begins to copy the own rows to the other ranks, and then how many there are."""
        if not self.copies:
            return
        ranks, rows, _ = self.stream.shape
        rank, ended = self.flags["rank"], self.flags["ended"]
        assert isinstance(rank, int) and isinstance(ended, DeviceBuffer)
        piece, copies = rows // ranks, list[tuple[DeviceBuffer, DeviceBuffer]]()
        for what, dim, begin, end in ((self.stream, 0, rank * piece, (rank + 1) * piece), (ended, 0, rank, rank + 1)):
            own, *others = (
                what.select(0, r).slice(dim, begin, end) for r in (rank, *(r for r in range(ranks) if r != rank))
            )
            copies += [(other, own) for other in others]
        self.stream.executor.copy_beside(copies)


def parts(config: GPTConfig, rows: int) -> int:
    """Of the squares of a row, in a pass of so many rows."""
    return cdiv(config.n_embd, PARTS[rows >= MANY_ROWS])


def may_spread(launcher: Launcher, config: GPTConfig, dtype: str) -> bool:
    """Whether the launcher has the ops of passes that share out rows, for one number of rows at least. If so, the model
    is folded. A bundle that was made for one pass has no other number."""
    if config.family != "gpt2" or not launcher.executor.runs_ptx:
        return False
    return all(launcher.has_some(op, dtype) for op in OPS)


def can_spread(launcher: Launcher, config: GPTConfig, ranks: int, rows: int, dtype: str) -> bool:
    """Whether a pass of so many rows can share them out: the launcher has entries for the products of every rank.
    `config`: of the whole model."""
    if rows % ranks or not may_spread(launcher, config, dtype):
        return False
    to, of, of_gelu = OPS
    sizes = {"R": ranks, "M": rows, "Q": rows // ranks, "Z": parts(config, rows), "TWO": 2}
    sizes["B"] = launcher.executor.sms  # of a channel
    wanted: set[tuple[str, int, int]] = set()  # ops with K and N; ranks have different parts where heads do not divide
    for part in (config.part(rank, ranks) for rank in range(ranks)):
        width, heads, hidden = config.n_embd, part.n_head * part.head_size, part.ffn
        wanted |= {(of, width, 3 * heads), (to, heads, width), (of_gelu, width, hidden), (to, hidden, width)}
    return all(launcher.has(op, dtype, {**sizes, "K": k, "N": n}) for op, k, n in wanted)
