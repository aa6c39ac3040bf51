"""A block of the decode step of eight texts: its text, and the words that it is told."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import i32

from toolchain.cute import dsl as cute
from toolchain.cute.layout import Layout

from ..decode.block import Place, as_number
from ..decode.plan import HEAD
from .plan import AT_ONCE, PARTS, TEXTS, Step


class Here(Place):
    """Rank r of a cluster attends for text r, if there are so many `texts`; to nothing, if not. `position`: that of its
    new token. Pairs of what is told to all blocks, two numbers of 16 bits a word, lie as a warp reads them as operand
    B: steps of 16 numbers, each lane's pairs of words side by side."""

    def __init__(self, s: Step, positions: Any) -> None:
        super().__init__(s)
        self.texts = positions.shape
        self.has_text = cute.less(self.rank, self.texts)
        position = positions[self.rank.minimum(self.texts - 1)]
        self.position = as_number(cute.select(self.has_text, position, cute.scalar(0, i32)))
        self.attended = cute.ceil_div(self.position, s.together * AT_ONCE) * AT_ONCE  # slots of keys and values
        self.steps = self.attended + s.beside  # slots of a layer
        self.mixed = cute.shared_tensor("i64", Layout(TEXTS * HEAD // 2))  # of the head's result, from each block
        self.units = cute.shared_tensor("i64", Layout(TEXTS * PARTS * HEAD // 2))  # hidden units of the cluster


def place_of(text: Any, pair: Any) -> Any:
    """The word of a text's pair of 64 numbers, of those that lie as operand B."""
    quarter, at = pair // 8, pair % 8
    return (at // 2 * 32 + text * 4 + quarter) * 2 + at % 2
