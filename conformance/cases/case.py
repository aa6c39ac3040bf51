"""A case of an op: its sizes, and the reason for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.contract.op import ops

ELEMENTS = "loaded element by element"  # why


@dataclass(frozen=True)
class Case:
    """One op at one set of sizes.

    `gpu_only`: too slow for the interpreter.
    `in_place`: the input whose buffer is also that of an output, which the op's `aliases` name.
    `misaligned`: no array begins at a multiple of 16 bytes.
    `mean`: the mean of x, much larger than its deviation.
    `sixteen`: f16 and bf16 only: the case is for entries that other dtypes do not have.
    `towering`: the scores of one early key are far above those of the keys near a query.
    """

    op: str
    dims: Mapping[str, int]
    why: str
    gpu_only: bool = False
    in_place: str = ""
    misaligned: bool = False
    mean: int = 0
    sixteen: bool = False
    towering: bool = False

    @property
    def shape(self) -> str:
        words = [f"{name}={size}" for name, size in self.dims.items()]
        words += ["in place"] * bool(self.in_place) + ["misaligned"] * self.misaligned
        words += ["towering key"] * self.towering
        return " ".join([*words, *[f"mean {self.mean}"] * bool(self.mean)])

    @property
    def in_place_output(self) -> str:
        """The output that `in_place` shares its buffer with."""
        return next(output for given, output in ops()[self.op].aliases if given == self.in_place)

    def dtypes(self) -> tuple[str, ...]:
        """The dtypes to run: those of the op, or with `sixteen` those of them that have 16 bits."""
        return tuple(d for d in ops()[self.op].dtypes if not self.sixteen or d in ("f16", "bf16"))


def case(
    op: str,
    why: str,
    *,
    gpu_only: bool = False,
    in_place: str = "",
    misaligned: bool = False,
    mean: int = 0,
    sixteen: bool = False,
    towering: bool = False,
    **dims: int,
) -> Case:
    return Case(op, dims, why, gpu_only, in_place, misaligned, mean, sixteen, towering)
