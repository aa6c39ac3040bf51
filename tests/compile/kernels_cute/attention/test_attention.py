"""Attention in CuTe for sm_90a: the instructions that its layouts ask for, and their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernels_cute.attention.attention import attention, maps
from kernels_cute.attention.attention_walk import Tiles
from tests.compile.compiled import ptxas_says
from toolchain.cute.dsl import Kernel
from toolchain.errors import UsageError
from toolchain.pinned.tools import tool

TILES = Tiles(consumers=2, blocks=1, ahead=True, in_turns=True)
WAITS = r"WARPGROUP\.DEPBAR\.LE gsb0, 0x([01])"


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return attention("bf16", TILES)


@pytest.fixture(scope="module")
def compiled(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What ptxas says, and the machine code."""
    folder = tmp_path_factory.mktemp("attention")
    source, cubin = folder / "k.ptx", folder / "k.cubin"
    source.write_text(kernel.ptx("sm_90a"))
    made = tool("ptxas").run(["--gpu-name=sm_90a", "--verbose", f"--output-file={cubin}", str(source)])
    return made.stdout + made.stderr, _code(cubin)


def _code(cubin: Path) -> str:
    return tool("nvdisasm").run(["--print-code", str(cubin)]).stdout


def test_a_box_is_what_one_barrier_waits_for(kernel: Kernel) -> None:
    q, k, v = maps(TILES)
    assert (q.box, k.box, v.box) == ((1, 128, 1, 64), (1, 64, 1, 64), (1, 64, 1, 64))
    text = str(kernel)
    assert text.count("cute_nvgpu.arch.copy.tma_load") == 3
    assert text.count(f"n = {128 * 64 * 2} : i32") == 1  # bytes of the queries
    assert text.count(f"n = {64 * 64 * 2} : i32") == 2  # of keys, and of values


def test_a_wider_head_is_brought_in_parts_of_a_row_of_the_swizzle() -> None:
    made = attention("f16", Tiles(head=128, keys=32, blocks=2))
    assert str(made).count("cute_nvgpu.arch.copy.tma_load") == 2 * 3
    assert made.shared_bytes >= (64 + 2 * 2 * 32) * 128 * 2


def test_nothing_spills_and_no_product_waits_for_another(compiled: tuple[str, str]) -> None:
    said, _ = compiled
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    assert "serialized" not in said  # what ptxas says where it lets each wgmma end before the next
    assert "setmaxnreg" not in said  # it says so where it takes no notice of it


def test_scores_come_from_shared_memory_and_weights_stay_in_registers(compiled: tuple[str, str]) -> None:
    _, code = compiled
    keys, values = 64 // 16, 64 // 16  # steps of 16 along the head, and along the keys
    scores = re.findall(r"HGMMA\.64x64x16\.F32\.BF16 R\d+, gdesc\[UR\d+\], ", code)
    products = re.findall(r"HGMMA\.64x64x16\.F32\.BF16 R\d+, R\d+, gdesc\[UR\d+\]\.tnspB", code)
    assert (len(scores), len(products)) == (3 * keys, 3 * values)  # the first tile, cut ones, whole ones; the last one
    assert "LDL" not in code
    assert "STL" not in code


def test_the_softmax_runs_beside_the_product_with_the_values(compiled: tuple[str, str]) -> None:
    """Between the wait for the scores and that for the product stand the exponentials of a tile."""
    _, code = compiled
    parts = re.split(WAITS, code)
    behind = [part for number, part in zip(parts[1::2], parts[2::2], strict=True) if number == "1"]
    assert len(behind) == 2  # the loop over cut tiles, and that over whole ones
    assert all(part.count("MUFU.EX2") >= 64 * 64 // 128 for part in behind)


def test_pairs_are_rounded_by_one_instruction(compiled: tuple[str, str]) -> None:
    _, code = compiled
    assert "PRMT" not in code.partition("HGMMA")[2]


@pytest.mark.parametrize(
    ("tiles", "registers"),
    [(TILES, (24, 240)), (Tiles(consumers=3, blocks=1), (24, 160)), (Tiles(blocks=3), (24, 136)), (Tiles(), (24, 104))],
)
def test_warpgroups_share_the_registers_of_the_launch(tiles: Tiles, registers: tuple[int, int]) -> None:
    assert tiles.registers == registers
    loads, computes = registers
    assert 128 * (loads + tiles.consumers * computes) * tiles.blocks <= 65536


@pytest.mark.parametrize("tiles", [Tiles(anchored=True), Tiles(head=128, blocks=2, anchored=True)])
def test_the_tiles_of_the_entries_fit_their_registers(tiles: Tiles) -> None:
    assert "0 bytes spill stores, 0 bytes spill loads" in ptxas_says(attention("bf16", tiles).ptx("sm_90a"))


def test_what_has_no_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match="a head of 96 elements"):
        Tiles(head=96)
    with pytest.raises(UsageError, match="a tile of 24 keys"):
        Tiles(keys=24)
    with pytest.raises(UsageError, match="multiply in turns"):
        Tiles(consumers=2, in_turns=True)
