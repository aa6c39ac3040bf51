"""Attention in CuTe for sm_80: the instructions that its layouts ask for."""

from __future__ import annotations

import re

import pytest

from kernels_cute.attention.attention_mma import Tiles, attention
from toolchain.compiling.stages import compile_ptx


@pytest.mark.parametrize(("tiles", "copies"), [(Tiles(), "cp.async.cg.shared.global"), (Tiles(32, aligned=False), "")])
def test_the_instructions_follow_from_the_layouts(tiles: Tiles, copies: str) -> None:
    ptx = attention("bf16", tiles).ptx("sm_80")
    # A warp has 16 queries. A step has an atom for each 8 keys and 16 elements of the head, and one for each 16 keys
    # and 8 elements; there is one loop for the tiles that the mask cuts, and one for the others.
    scores, products = tiles.keys // 8 * tiles.head // 16, tiles.keys // 16 * tiles.head // 8
    assert len(re.findall(r"mma\.sync\.aligned\.m16n8k16", ptx)) == 2 * (scores + products)
    assert len(re.findall(r"ldmatrix\.sync\S*\.x4\.trans", ptx)) == 2 * products // 2
    assert len(re.findall(r"ex2\.approx\.ftz", ptx)) == 2 * (16 * tiles.keys // 32 + 2)
    assert bool(re.search(r"cp\.async\.c[ag]\.", ptx)) == bool(copies)
    assert copies in ptx
    assert ".local" not in ptx
    assert compile_ptx(ptx.encode(), "sm_80").startswith(b"\x7fELF")
