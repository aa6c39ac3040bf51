"""Attention for sm_80 on the executor: its results, and what is said of it with a mistake."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import kernels_cute.attention.attention_mma as module
from conformance.ops.inputs import Inputs
from kernels_cute.attention.attention_mma import Tiles, attention
from tests.unit.kernels_cute.attention.test_attention import inputs, share
from tests.unit.kernels_cute.heads import run_head
from tests.unit.toolchain.cute.executor.mutate import without
from tests.unit.toolchain.cute.executor.ptx import mutate
from toolchain.cute import dsl as cute
from toolchain.cute.executor import MissingWait, Race, Report, run
from toolchain.errors import UsageError

TILES = Tiles(head=32, keys=32)


def launch(kernel: cute.Kernel, tiles: Tiles, given: Inputs, ptx: str = "") -> Report:
    b, t, h, _ = given.outputs["out"].shape
    arrays = [given.arrays[name] for name in "qkv"]
    return run(kernel, (*arrays, given.outputs["out"], given.scalars["scale"]), -(-t // tiles.rows) * b * h, ptx=ptx)


@pytest.mark.parametrize(
    ("tiles", "dtype", "given"),
    [
        (TILES, "f16", {"t": 1, "s": 1, "b": 3, "d": 32}),
        (TILES, "bf16", {"t": 70, "s": 101, "h": 2, "d": 32}),  # remainders, and two tiles that the mask cuts
        (Tiles(), "bf16", {"t": 70, "s": 130, "towering": True}),
        (Tiles(head=128, keys=32), "f16", {"t": 65, "s": 65, "d": 128}),
        (Tiles(head=64, keys=32, aligned=False), "bf16", {"t": 35, "s": 70, "b": 2}),
    ],
    ids=["one", "remainders", "towering", "wide", "misaligned"],
)
def test_it_agrees_with_float64(tiles: Tiles, dtype: str, given: dict[str, Any]) -> None:
    made = inputs(dtype, **given)
    report = launch(attention(dtype, tiles), tiles, made)
    assert share(dtype, made) <= 1
    assert not report.conflicts


@pytest.mark.parametrize("tiles", [TILES, Tiles(), Tiles(head=32, keys=32, aligned=False)])
def test_its_ptx_computes_the_same(tiles: Tiles) -> None:
    kernel, (ir, ptx) = attention("bf16", tiles), (inputs("bf16", 10, 40, d=tiles.head) for _ in range(2))
    launch(kernel, tiles, ir)
    launch(kernel, tiles, ptx, kernel.ptx("sm_80"))
    assert (ir.outputs["out"].view(np.uint16) == ptx.outputs["out"].view(np.uint16)).all()


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("nvvm.cp.async.wait.group", 0, MissingWait),  # of the queries and the first keys
        ("nvvm.cp.async.wait.group", 1, MissingWait),  # of the next ones
        ("nvvm.barrier0", 1, (Race, MissingWait)),
    ],
)
def test_a_missing_operation_is_named(name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        launch(without(attention("bf16", TILES), name, which), TILES, inputs("bf16", 130, 130, d=32))
    assert "kernels_cute/attention/attention_mma.py" in str(found.value)


@pytest.mark.parametrize(
    ("opcode", "which", "wanted"),
    [
        ("cp.async.wait_group", 0, MissingWait),
        ("cp.async.commit_group", 1, MissingWait),
        ("bar.sync", 0, Race),
        ("bar.sync", 2, Race),
    ],
)
def test_what_its_ptx_lacks_is_named(opcode: str, which: int, wanted: Any) -> None:
    kernel = attention("bf16", TILES)
    with pytest.raises(wanted) as found:
        launch(kernel, TILES, inputs("bf16", 130, 130, d=32), mutate.without(kernel.ptx("sm_80"), opcode, which))
    assert re.fullmatch(r"attention\.ptx:\d+", found.value.site.location)


def test_what_has_no_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match="a head of 96 elements"):
        Tiles(head=96)
    with pytest.raises(UsageError, match="a tile of 24 keys"):
        Tiles(keys=24)
    with pytest.raises(UsageError, match="1280 threads and 64 keys"):
        Tiles(warps=40)
    with pytest.raises(UsageError, match="128 threads and 0 keys"):
        Tiles(keys=0)
    with pytest.raises(UsageError, match="takes 294912 bytes of shared memory"):
        Tiles(head=128, keys=256, warps=8)
    with pytest.raises(
        UsageError, match="160 threads do not load a tile of the keys of 16 rows of 32 elements in whole"
    ):
        Tiles(head=32, keys=16, warps=5)
    with pytest.raises(UsageError, match="32 threads do not load a tile of the queries of 16 rows of 64 elements"):
        Tiles(warps=1, aligned=False)


@pytest.mark.parametrize("tiles", [TILES, Tiles(), Tiles(head=128, keys=32)])
def test_the_shared_memory_is_what_the_kernel_takes(tiles: Tiles) -> None:
    assert tiles.shared_bytes == attention("bf16", tiles).shared_bytes


def test_the_head_of_the_module_runs_it() -> None:
    given = inputs("bf16", 64, 64)
    run_head(module, **given.arrays, **given.outputs, **given.scalars)
    assert share("bf16", given) <= 1
