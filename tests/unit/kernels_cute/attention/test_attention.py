"""Attention for sm_90a on the executor: its results, and what is said of it with a mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernels_cute.attention.attention as module
from conformance.cases import Case
from conformance.ops.compare import compare
from conformance.ops.inputs import Inputs, make_inputs
from conformance.reference import eager, float64
from kernels_cute.attention.attention import attention
from kernels_cute.attention.attention import maps as maps_of
from kernels_cute.attention.attention_walk import Tiles
from tests.unit.kernels_cute.heads import run_head
from tests.unit.toolchain.cute.executor.mutate import without
from tests.unit.toolchain.cute.executor.ptx import mutate
from toolchain.cute import dsl as cute
from toolchain.cute.executor import Deadlock, MissingFence, MissingWait, Race, Report, TensorMap, run

ARCH = "cute_nvgpu.arch."
PLAIN = Tiles(keys=32)
ANCHORED = Tiles(keys=32, anchored=True)
AHEAD = Tiles(keys=32, ahead=True, anchored=True)
IN_TURNS = Tiles(consumers=2, keys=32, blocks=1, ahead=True, in_turns=True)


def inputs(dtype: str, t: int, s: int, *, b: int = 1, h: int = 1, d: int = 64, towering: bool = False) -> Inputs:
    return make_inputs(Case("attention", {"B": b, "T": t, "S": s, "H": h, "D": d}, "", towering=towering), dtype, 0)


def launch(kernel: cute.Kernel, tiles: Tiles, given: Inputs, blocks: int, ptx: str = "") -> Report:
    maps = [TensorMap(given.arrays[said.array], said.box, said.swizzle) for said in maps_of(tiles)]
    arrays = [given.arrays[name] for name in "qkv"]
    return run(kernel, (*arrays, given.outputs["out"], given.scalars["scale"], *maps), blocks, ptx=ptx)


def share(dtype: str, given: Inputs) -> float:
    """How much of its bound the error takes."""
    q, k, v = (given.arrays[name] for name in "qkv")
    scale = given.scalars["scale"]
    wanted, same = float64.attention(q, k, v, scale), eager.attention(q, k, v, scale, dtype=dtype)
    return compare("attention", dtype, given.outputs["out"], wanted, same).share


@pytest.mark.parametrize(
    ("tiles", "dtype", "blocks", "given"),
    [
        (PLAIN, "f16", 3, {"t": 1, "s": 1, "b": 3}),  # one query, one key; three sequences
        (PLAIN, "bf16", 2, {"t": 70, "s": 101, "h": 3}),  # remainders; a first query whose tile of keys is not its last
        (ANCHORED, "bf16", 1, {"t": 130, "s": 130}),  # three tiles for one block: all rings go round
        (AHEAD, "bf16", 2, {"t": 7, "s": 150, "b": 2}),
        (IN_TURNS, "bf16", 1, {"t": 200, "s": 200}),  # two warpgroups
        (Tiles(head=128, keys=32, blocks=2), "f16", 1, {"t": 65, "s": 65, "d": 128}),
    ],
    ids=["one", "remainders", "anchored", "ahead", "in_turns", "wide"],
)
def test_it_agrees_with_float64(tiles: Tiles, dtype: str, blocks: int, given: dict[str, Any]) -> None:
    made = inputs(dtype, **given)
    report = launch(attention(dtype, tiles), tiles, made, blocks)
    assert share(dtype, made) <= 1
    assert not report.conflicts


@pytest.fixture(scope="module")
def anchored() -> cute.Kernel:
    return attention("bf16", ANCHORED)


def test_what_overflows_relative_to_its_anchor_is_made_again(anchored: cute.Kernel) -> None:
    steps: list[int] = []
    for towering in (False, True):
        given = inputs("bf16", 130, 130, towering=towering)
        with np.errstate(over="ignore", invalid="ignore"):
            steps.append(launch(anchored, ANCHORED, given, 1).steps)
        assert share("bf16", given) <= 1
    assert steps[1] > 1.8 * steps[0]


@pytest.fixture(scope="module")
def ptx(anchored: cute.Kernel) -> str:
    return anchored.ptx("sm_90a")


def test_its_ptx_computes_the_same(anchored: cute.Kernel, ptx: str) -> None:
    ir, given = (inputs("bf16", 40, 70, towering=True) for _ in range(2))
    launch(anchored, ANCHORED, ir, 1)
    launch(anchored, ANCHORED, given, 1, ptx)
    assert (ir.outputs["out"].view(np.uint16) == given.outputs["out"].view(np.uint16)).all()


@pytest.mark.parametrize(
    ("opcode", "which", "wanted"),
    [
        ("mbarrier.try_wait", 1, MissingWait),
        ("mbarrier.arrive.release", 0, Deadlock),
        ("wgmma.fence", 1, MissingFence),  # weights are made
        ("wgmma.wait_group", 0, MissingWait),
    ],
)
def test_what_its_ptx_lacks_is_named(anchored: cute.Kernel, ptx: str, opcode: str, which: int, wanted: Any) -> None:
    text = mutate.without(ptx, opcode, which, 2 if opcode.endswith("_wait") else 1)
    with pytest.raises(wanted, match=r"attention_sm90\.ptx:\d+"):
        launch(anchored, ANCHORED, inputs("bf16", 70, 70, towering=True), 1, text)


MISTAKES = [
    (f"{ARCH}mbarrier.wait", 1, MissingWait),  # of the loader: it overwrites keys
    (f"{ARCH}mbarrier.wait", 2, Race),  # or values, for which the others have waited by then
    (f"{ARCH}mbarrier.wait", 4, MissingWait),  # of the computing warps, for queries
    (f"{ARCH}mbarrier.wait", 5, MissingWait),  # for keys, in the loop over tiles that the mask cuts
    (f"{ARCH}mbarrier.wait", 6, MissingWait),  # and for values
    (f"{ARCH}mbarrier.wait", 7, MissingWait),  # in the loop over whole ones, for keys
    (f"{ARCH}mbarrier.wait", 8, MissingWait),  # and for values
    (f"{ARCH}mbarrier.arrive", 0, Deadlock),
    (f"{ARCH}wgmma.fence", 1, MissingFence),  # sums were scaled and weights made
    (f"{ARCH}wgmma.wait_group", 0, MissingWait),  # scores are used
    (f"{ARCH}wgmma.wait_group", 1, MissingWait),  # values are overwritten
]


@pytest.mark.parametrize(("name", "which", "wanted"), MISTAKES)
def test_a_missing_operation_is_named(anchored: cute.Kernel, name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        launch(without(anchored, name, which), ANCHORED, inputs("bf16", 200, 200, towering=True), 1)
    assert "kernels_cute/" in found.value.site.location


def test_queries_that_are_overwritten_are_named(anchored: cute.Kernel) -> None:
    """Only a tile of queries with few keys: with many of them the wait for a free tile of keys is enough."""
    with pytest.raises(MissingWait, match=r"copy\.tma_load"):
        launch(without(anchored, f"{ARCH}mbarrier.wait", 0), ANCHORED, inputs("bf16", 1, 1, b=3), 1)


def test_the_head_of_the_module_runs_it() -> None:
    given = inputs("bf16", 64, 64)
    run_head(module, **given.arrays, **given.outputs, **given.scalars)
    assert share("bf16", given) <= 1
