"""A decode step of GPT-2 for one sequence on one of several GPUs (ranks) that share it, in one launch, for sm_90a.

A rank has some heads, with their keys and values, some hidden units, and some tokens' logits. It runs the launch of
step.py, but for the two sums of a layer, which are over the blocks of all ranks: who adds the last term of the rank's
own sum stores it to all ranks, and each adds up the sums of all as integers. So all ranks have the same bits of the
residual stream. docs/one-kernel.md says why no word is written again too early.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import f32, i32

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.errors import UsageError

from .block import Cache, Here, as_number, element_address, flat
from .lanes import COLUMNS
from .likeliest import Likeliest
from .plan import ADDED, PROJECTED, Step
from .step import end, logits_of, named, parameters, start, walk_layer
from .stream import Producer
from .warps import Warps

PLACES = 4  # of meetings, which they take in turns: two of a layer, in layers with even and with odd numbers
OF_RANK = 8  # a wait of `errors` is this much more for each rank, and once more, than the wait of one GPU


@dataclass(frozen=True)
class RankStep(Step):
    """`ranks`: GPUs that share the model. `own_heads`, `own_hidden`, `vocabulary`: what this one has of it. `first`: a
    warp waits for a word of each rank before it asks for all, so that few are read again and again. Raises
    UsageError."""

    ranks: int = field(default=2, kw_only=True)
    first: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.own_heads or not self.own_hidden or self.ranks < 2:
            raise UsageError(f"a step of {self.ranks} ranks needs to be told its heads and hidden units")
        if self.bits != 16 or self.logit_bits != 16 or self.cache_bits != 16:
            raise UsageError("a step of several ranks has weights and a cache in 16 bits")

    @property
    def met(self) -> int:
        """Words of each rank that the others write."""
        return PLACES * self.ranks * self.width


class RankWarps(Warps):
    """Those whose sums are over all ranks."""

    def __init__(self, *given: Any, met: Any, rank: Any) -> None:
        """`met`: i64 (R, `RankStep.met`), of which row r is in rank r's memory."""
        super().__init__(*given)
        self.met, self.rank = met, rank

    def sum(self, layer: Any, which: int, terms: int) -> list[Any]:
        del terms  # each rank has its own number of them
        if self.step.first:
            self._met(layer, which, self.warp * COLUMNS)
        return self._met(layer, which, self.own * 2)

    def _met(self, layer: Any, which: int, column: Any) -> list[Any]:
        """Two columns' sums over all ranks."""
        ranks = self.step.ranks
        words = [self._word(self.rank, layer, which, each, column) for each in range(ranks)]
        *values, late = arch.instruction(
            "word.wait_ranks", *words, self._tag(layer, which), self.late[0], results=[f32, f32, i32], n=ranks
        )
        who = cute.number(late)  # 1 + the rank
        wait = (ADDED if which else PROJECTED) + who * OF_RANK
        first = cute.both(cute.same(self.late[0], 0), cute.less(0, who))
        self.late[0] = cute.select(first, cute.scalar(wait, i32), self.late[0])
        return [cute.Scalar(value) for value in values]

    def add(self, layer: Any, which: int, column: Any, value: Any) -> None:
        s = self.step
        own, terms = element_address(self.sums, self.column(layer, which, column)), s.clusters if which else s.heads
        words = [self._word(each, layer, which, self.rank, column) for each in range(s.ranks)]
        arch.instruction("word.add_to_ranks", own, value, terms, self._tag(layer, which), *words, n=s.ranks)

    def _tag(self, layer: Any, which: int) -> Any:
        """The number of a meeting, from 1 on."""
        return (self.launch * self.step.layers + layer) * 2 + which + 1

    def _word(self, memory: Any, layer: Any, which: int, source: Any, column: Any) -> Any:
        """The pointer to what rank `source` tells rank `memory` of a column."""
        s = self.step
        place = layer % (PLACES // 2) * 2 + which
        return element_address(self.met[memory, None], (place * s.ranks + source) * s.width + column)


def decode_step(
    step: RankStep, name: str = "decode_step_of_ranks", op: str = "decode_step_of_ranks"
) -> cute.Kernel:  # fmt: skip
    """The kernel of the op, in bf16, with a tensor map of the cache behind its parameters. All arrays are without gaps,
    but for the words that ranks tell each other, whose rows are a rank's memory apart."""
    s = step

    @cute.kernel(*parameters(op), threads=s.threads, name=name, cluster=(s.cluster, 1, 1), min_blocks=1)
    def kernel(*given: Any) -> None:
        a = named(op, given)
        arrays = {name: flat(array) for name, array in a.items() if isinstance(array, cute.TensorValue)}
        here, position = Here(s), as_number(a["positions"][0])
        with cute.when(cute.same(here.warp, s.warps)):
            Producer(here, {**arrays, "logits": arrays["head"]}, given[-1], position).run()
        with cute.when(cute.less(here.warp, s.warps)):
            cached = Cache(arrays["cache"], a["cache"].shape[2])
            w = RankWarps(
                here, arrays, arrays["sums"], a["launches"], a["eps"], position, cached, met=a["met"], rank=a["rank"]
            )
            start(w, arrays["wte"], arrays["wpe"], as_number(a["tokens"][0]))
            for layer in cute.range_(s.layers):
                walk_layer(w, layer)
            found = Likeliest(w, a["visible"])
            logits_of(w, arrays, found)
            found.tell(arrays["values"], arrays["indices"], a["values"].shape[1])
            end(w, arrays["errors"])

    return kernel
