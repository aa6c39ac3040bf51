"""`draw-layout`: a picture of a layout, or of the threads and values of an atom."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common.options import command, emit

EXAMPLES = """\
  tilestack draw-layout "(4,8):(8,1)"
  tilestack draw-layout "S<3,2,3> o 0 o (8,32):(32,1)" --access 8:1 --svg swizzle.svg
  tilestack draw-layout mma.m16n8k16.f32.bf16 --operand a
  tilestack draw-layout ldmatrix.x4.trans
"""


def add(commands: Any) -> None:
    made = command(commands, "draw-layout", draw_layout, "draw a layout of CuTe, or an atom's threads", EXAMPLES)
    made.add_argument("what", metavar="LAYOUT|ATOM", help="a layout, with a swizzle or without, or an atom's name")
    operands = ("a", "b", "c", "rows", "registers")
    made.add_argument("--operand", choices=operands, help="of an atom; default c, and registers of a copy")
    made.add_argument("--element-bytes", type=int, choices=(1, 2, 4), default=4, help="of a layout; default 4")
    made.add_argument("--access", metavar="LAYOUT", help="the index that each thread reaches: counts bank conflicts")
    made.add_argument("--svg", type=Path, metavar="FILE", help="write an SVG file instead of text")


def draw_layout(args: argparse.Namespace) -> int:
    from toolchain.cute import draw
    from toolchain.cute.atoms import find, find_copy
    from toolchain.cute.atoms.tcgen05 import find_tcgen05
    from toolchain.cute.layout import Layout, LayoutError
    from toolchain.errors import UsageError

    try:
        if args.what.startswith(("mma", "wgmma")):
            picture = draw.of_atom(find(args.what), args.operand or "c")
        elif args.what.startswith("tcgen05"):
            picture = draw.of_tensor_memory(find_tcgen05(args.what))
        elif args.what.startswith(("ldmatrix", "stmatrix")):
            picture = draw.of_copy(find_copy(args.what), args.operand or "registers")
        else:
            access = Layout.parse(args.access) if args.access else None
            picture = draw.of_layout(draw.parse_layout(args.what), args.element_bytes, access)
    except LayoutError as error:
        hint = "a layout is written as (4,8):(8,1), shape and strides; an atom's name as mma.m16n8k16.f32.bf16"
        raise UsageError(str(error), hint=hint) from error
    emit(args.svg, (draw.as_svg(picture) if args.svg else draw.as_text(picture)).encode())
    return 0
