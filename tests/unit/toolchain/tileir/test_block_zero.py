"""Accumulators that start at a block index, and the grids for which that index is always 0."""

from __future__ import annotations

import pytest

from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError
from toolchain.tileir import bytecode, text
from toolchain.tileir.block_zero import check

TILE, ONE = "tile<16x16xf32>", "tile<1x1xf32>"
HEAD = f"""
entry @k(%x: tile<ptr<f32>>) {{
%bx, %by, %bz = get_tile_block_id : tile<i32>
%zero = constant <i32: 0> : tile<i32>
%one = constant <i32: 1> : tile<i32>
%yes = cmpi less_than %zero, %bx, signed : tile<i32> -> tile<i1>
%a = constant <f32: 1.0> : {TILE}
%known = constant <f32: 0.0> : {TILE}
"""


def start(axis: str) -> str:
    return (
        f"%f = itof %b{axis} signed : tile<i32> -> tile<f32>\n%r = reshape %f : tile<f32> -> {ONE}\n"
        f"%start = broadcast %r : {ONE} -> {TILE}\n"
    )


def mmaf(acc: str, name: str = "p") -> str:
    return f"%{name} = mmaf %a, %a, %{acc} : {TILE}, {TILE}, {TILE}\n"


def kernel(*lines: str) -> bytes:
    return bytecode.write(text.parse("".join((HEAD, *lines, "return\n}")), filename="k.mlir"), "13.4")


def spec(*grid: str) -> EntrySpec:
    x, y, z = grid
    return EntrySpec("k", "gelu", "mlir", "f32", grid=(x, y, z))


LOOP = (
    f"%out = for %i in (%zero to %one, step %one) : tile<i32> iter_values(%acc = %start) -> ({TILE}) {{\n"
    + mmaf("acc")
    + f"continue %p : {TILE}\n}}\n"
)
NESTED = (
    f"%out = for %i in (%zero to %one, step %one) : tile<i32> iter_values(%kept = %start) -> ({TILE}) {{\n"
    f"%in = for %j in (%zero to %one, step %one) : tile<i32> iter_values(%acc = %kept) -> ({TILE}) {{\n"
    + mmaf("acc")
    + f"continue %p : {TILE}\n}}\ncontinue %in : {TILE}\n}}\n"
)
BRANCH = f"%acc = if %yes -> ({TILE}) {{\nyield %known : {TILE}\n}} else {{\nyield %start : {TILE}\n}}\n" + mmaf("acc")


@pytest.mark.parametrize("body", [mmaf("start"), LOOP, NESTED, BRANCH], ids=["direct", "loop", "nested", "branch"])
@pytest.mark.parametrize(("axis", "grid"), [("y", ("N", "2", "1")), ("y", ("N", "M", "1")), ("z", ("N", "1", "M"))])
def test_a_grid_in_which_the_start_is_no_zero_is_refused(body: str, axis: str, grid: tuple[str, str, str]) -> None:
    with pytest.raises(SourceError, match=f"k: the accumulator of cuda_tile.mmaf starts at the block index in {axis}"):
        check(kernel(start(axis), body), spec(*grid))


@pytest.mark.parametrize("body", [mmaf("start"), LOOP, NESTED, BRANCH], ids=["direct", "loop", "nested", "branch"])
def test_a_grid_with_one_block_on_that_axis_will_do(body: str) -> None:
    check(kernel(start("y"), body), spec("N", "1", "1"))
    check(kernel(start("y"), body), spec("N", "1", "M"))
    check(kernel(start("z"), body), spec("N", "M", "1"))


def test_an_accumulator_that_starts_at_a_constant_goes_with_any_grid() -> None:
    other = start("y") + mmaf("known")
    check(kernel(other), spec("N", "M", "N"))
    # A loop that starts at a block index, beside one that does not.
    check(kernel(start("y"), LOOP.replace("%acc = %start", "%acc = %known")), spec("N", "M", "N"))
