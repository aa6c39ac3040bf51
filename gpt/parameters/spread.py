"""Rows of the residual stream that are shared out to ranks, so that products hide what ranks send each other.

Each of R ranks adds up a piece of the rows, N / R of them, and has a copy of all. What a product reads of the other
ranks they store while it begins with the own piece: the product that reads the stream sends own rows, of many rows copy
engines do, which takes nothing from the multiprocessors.

Attention stores its results to the ranks that have their rows (`attention_to_ranks`). So each rank has all heads of its
rows, and multiplies them with the whole projection (`linear_of_own_rows`). In the MLP each rank multiplies its hidden
units of all rows, and ranks send each other parts of the sums (`linear_to_ranks`): the hidden layer has four times as
many columns as they have.

All norms within the layers have to be part of the products behind them: the model is folded (see fold.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.contract.expressions import cdiv
from toolchain.runtime import DeviceBuffer, Launcher

from ..config import GPTConfig

OF, OF_GELU = "rms_linear_of_ranks", "rms_linear_gelu_of_ranks"
ATTENTION, OWN, TO = "attention_to_ranks", "linear_of_own_rows", "linear_to_ranks"
OPS = (OF, ATTENTION, OWN, OF_GELU, TO)  # of a layer
COPIED_ROWS = 4096  # of a pass, from which on copy engines send rows: below, products that send take less
# Columns of a part of the squares, which a tile sums up, behind attention and behind the MLP, from a pass of so many
# rows on: those of the fastest products
PARTS = {0: (128, 128), 4096: (224, 160), 8192: (160, 160)}


@dataclass(frozen=True)
class Spread:
    """In the memory of all ranks: `stream` (R, N, C), `squares` (R, Z, N) f32 of its rows behind attention and behind
    the MLP, and what ranks make for each other: the results of attention of all heads, `attended` (R, N / R, H D), and
    parts of the MLP's sums, `arrived` (R, R, N / R, C). `flags`: what their products take of the channel."""

    stream: DeviceBuffer
    squares: tuple[DeviceBuffer, DeviceBuffer]
    attended: DeviceBuffer
    arrived: DeviceBuffer
    flags: Mapping[str, DeviceBuffer | float]

    def of(self, op: str) -> dict[str, DeviceBuffer | float]:
        """What an op takes of all this."""
        if op == ATTENTION:
            return {"out": self.attended, "rank": self.flags["rank"]}
        squares = self.squares[op in (OF, TO)]
        if op == OWN:
            return {"x": self.attended, "out": self.stream, "squares": squares, **self.flags}
        if op == TO:
            return {"out": self.stream, "squares": squares, "arrived": self.arrived, **self.flags}
        waits = {name: self.flags[name] for name in ("ended", "state", "rank")}
        return {"x": self.stream, "squares": squares, "sends": int(not self.copies), **waits}

    def first(self, rows: int, parts: tuple[int, int]) -> Spread:
        """The same memory for a pass of fewer rows. `parts`: of the squares, as `parts` below says."""
        piece = rows // self.stream.shape[0]

        def of(count: int) -> DeviceBuffer:
            return self.squares[0].slice(1, 0, count).slice(2, 0, rows)

        return Spread(
            self.stream.slice(1, 0, rows), (of(parts[0]), of(parts[1])), self.attended.slice(1, 0, piece),
            self.arrived.slice(2, 0, piece), self.flags,
        )  # fmt: skip

    @property
    def copies(self) -> bool:
        """Whether copy engines send rows, not the products that read them."""
        return self.stream.shape[1] >= COPIED_ROWS

    def made(self) -> None:
        """Behind a product that adds to the stream, in a pass."""
        if self.copies:
            self.send()

    def send(self) -> None:
        """Begins to copy the own rows to the other ranks, and then how many there are."""
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


def parts(config: GPTConfig, rows: int) -> tuple[int, int]:
    """How many parts the sum of squares of a row has behind attention, and behind the MLP, in a pass of `rows`."""
    attention, mlp = next(columns for least, columns in reversed(PARTS.items()) if rows >= least)
    return cdiv(config.n_embd, attention), cdiv(config.n_embd, mlp)


def may_spread(launcher: Launcher, config: GPTConfig, dtype: str) -> bool:
    """Whether the launcher has the ops of passes that share out rows, for one number of rows at least. If so, the model
    is folded. A bundle that was made for one pass has no other number."""
    if config.family != "gpt2" or not launcher.executor.runs_ptx:
        return False
    return all(launcher.has_some(op, dtype) for op in launched(config))


def launched(config: GPTConfig) -> tuple[str, ...]:
    """The ops of all layers: behind the last one the ranks' sums are added up by another."""
    return OPS if config.n_layer > 1 else OPS[: OPS.index(TO)]


def can_spread(
    launcher: Launcher, config: GPTConfig, ranks: int, rows: int, dtype: str, length: int = 0
) -> bool:  # fmt: skip
    """Whether a pass of so many rows can share them out: the launcher has entries for the launches of every rank.
    `config`: of the whole model; `length`: of its sequences, if nothing is said all rows are one."""
    if rows % ranks or not may_spread(launcher, config, dtype):
        return False
    width, attended, length = config.n_embd, config.n_head * config.head_size, length or rows
    behind_attention, behind_mlp = parts(config, rows)
    sizes = {"R": ranks, "M": rows, "Q": rows // ranks, "TWO": 2, "B": launcher.executor.sms}  # B: of a channel
    wanted: set[tuple[str, int, int, int]] = set()  # ranks have different parts where heads do not divide
    for part in (config.part(rank, ranks) for rank in range(ranks)):
        heads = {"B": rows // length, "T": length, "H": part.n_head, "C": attended, "D": part.head_size}
        if not launcher.has(ATTENTION, dtype, {**sizes, **heads}):
            return False
        wanted |= {
            (OF, width, 3 * part.n_head * part.head_size, behind_mlp), (OWN, attended, width, behind_attention),
            (OF_GELU, width, part.ffn, behind_attention), (TO, part.ffn, width, behind_mlp),
        }  # fmt: skip
    needed = launched(config)
    return all(launcher.has(op, dtype, {**sizes, "K": k, "N": n, "Z": z}) for op, k, n, z in wanted if op in needed)
