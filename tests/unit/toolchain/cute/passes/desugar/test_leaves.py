"""Leaves of values as simpler operations, also where a tile's numbers are not known."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

from toolchain.cute.executor import run
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES

KERNEL = """
gpu.module @kernels {{
  llvm.func @k(%out: !llvm.ptr<1>, %n: i32, %m: i32) attributes {{nvvm.kernel}} {{
{lines}
    llvm.store %r, %out : i32, !llvm.ptr<1>
    llvm.return
  }}
}}
"""
TILE = '%t = cute.make_tile(%n, %m) : (i32, i32) -> !cute.tile<"[?:1;(4,2):(1,?);8]">'
OF = '!cute.tile<"[?:1;(4,2):(1,?);8]">'


def number(kind: str, op: str, more: str = "") -> str:
    """A number of a value, as `%r`."""
    return f'%s = {op}({kind}) : {more} -> !cute.int_tuple<"?">\n%r = cute.get_scalars(%s) : !cute.int_tuple<"?">'


LEAVES = f"%a, %b, %c = cute.get_leaves(%t) : {OF}"
LAYOUTS = '%a, %b, %c = cute.get_layouts_from_tile(%t) : <"[?:1;(4,2):(1,?);8]">'
SHAPE = '%t = cute.make_shape(%n, %m) : (i32, i32) -> !cute.shape<"(?,(4,?))">'
CASES = {
    "tile": ((TILE, LEAVES, number("%a", "cute.size", '(!cute.layout<"?:1">)')), 5),
    "stride": ((TILE, LEAVES, number("%b", "cute.cosize", '(!cute.layout<"(4,2):(1,?)">)')), 3 + 7 + 1),
    "layouts": ((TILE, LAYOUTS, number("%a", "cute.size", '(!cute.layout<"?:1">)')), 5),
    "tuple": ((SHAPE, '%a, %b, %c = cute.get_leaves(%t) : !cute.shape<"(?,(4,?))">',
               '%r = cute.get_scalars(%c) : !cute.shape<"?">'), 7),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_number_of_a_leaf_is_that_of_the_value(name: str) -> None:
    lines, wanted = CASES[name]
    out = np.zeros(1, np.int32)
    run(KERNEL.format(lines="\n".join(lines)), (out, 5, 7), threads=1)
    assert out[0] == wanted


def test_a_leaf_that_is_known_is_static() -> None:
    size = '%s = cute.size(%c) : (!cute.layout<"8:1">) -> !cute.int_tuple<"8">'
    lines = "\n".join((TILE, LEAVES, size, '%r = cute.get_scalars(%s) : !cute.int_tuple<"8">'))
    module = parse(KERNEL.format(lines=lines))
    PASSES["cute-desugar"](module)
    sizes = [op for op in module.walk() if op.name == "cute.size"]
    assert [op.operands[0].owner.name for op in sizes if isinstance(op.operands[0].owner, Operation)] == ["cute.static"]
