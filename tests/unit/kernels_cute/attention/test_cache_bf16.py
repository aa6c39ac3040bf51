"""Attention of one token to a cache in bf16 on the executor: its results as IR and as PTX, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernels_cute.attention.cache_bf16 as module
from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import verdict
from conformance.reference import eager, float64
from kernels_cute.attention.cache_bf16 import Tiles, unsplit
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.contract.entry import ops
from toolchain.cute import dsl as cute
from toolchain.cute.executor import MissingWait, OutOfBounds, Race, run
from toolchain.errors import ConformanceError, UsageError

OP = "decode_attention_unsplit"
TWO, THREE = Tiles(warps=2), Tiles(warps=2, stages=3)


def inputs(**sizes: int) -> Inputs:
    """Positions from the first to the last of the cache; behind each there is NaN."""
    return make_inputs(Case(OP, {"D": 64, **sizes}, ""), "bf16", seed=1)


def launch(tiles: Tiles, given: Inputs, *, as_ptx: bool = False, kernel: cute.Kernel | None = None) -> None:
    """Fills the outputs."""
    made = kernel or unsplit(tiles)
    arrays = {**given.arrays, **given.outputs}
    grid = arrays["q"].shape[1], arrays["q"].shape[0]
    ptx = made.ptx("sm_90a") if as_ptx else ""
    run(made, (*(arrays[p.name] for p in ops()[OP].params if p.dims), given.scalars["scale"]), grid, ptx=ptx)


def checked(tiles: Tiles, **sizes: int) -> None:
    """As conformance does. Raises ConformanceError."""
    given, before = inputs(**sizes), inputs(**sizes)
    launch(tiles, given)
    arguments = {**before.arrays, **{name: before.outputs[name] for name in ops()[OP].updates}, **before.scalars}
    exact, usual = getattr(float64, OP)(**arguments), getattr(eager, OP)(**arguments, dtype="bf16")
    for param, wanted, near in zip(ops()[OP].outputs, exact, usual, strict=True):
        verdict(OP, "bf16", param.name, given.outputs[param.name], wanted, near)


@pytest.mark.parametrize(
    ("tiles", "sizes"),
    [
        (TWO, {"B": 4, "P": 164, "H": 2}),  # the ring goes round; from no position to all
        (THREE, {"B": 3, "P": 100, "H": 1}),
        (Tiles(warps=4, positions=32), {"B": 2, "P": 36, "H": 1}),  # warps without a step
        (Tiles(warps=1), {"B": 2, "P": 129, "H": 1}),
    ],
    ids=["two", "three", "idle", "alone"],
)
def test_the_token_is_appended_and_attended_to(tiles: Tiles, sizes: dict[str, int]) -> None:
    checked(tiles, **sizes)


@pytest.mark.parametrize("tiles", [TWO, THREE], ids=["two", "three"])
def test_its_ptx_computes_the_same(tiles: Tiles) -> None:
    ir, ptx = (inputs(B=2, P=132, H=1) for _ in range(2))
    launch(tiles, ir)
    launch(tiles, ptx, as_ptx=True)
    for name, array in ir.outputs.items():
        assert array.tobytes() == ptx.outputs[name].tobytes()


def unclamped(self: Any, cache: Any, position: Any) -> Any:
    return cache[self.sequence, position, self.head, None]


def test_positions_behind_the_token_are_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Attention, "_row", unclamped)
    with pytest.raises(OutOfBounds):
        checked(TWO, B=2, P=60, H=1)
    with pytest.raises(ConformanceError):  # NaN times no weight
        checked(TWO, B=3, P=64, H=1)


def old_always(self: Any, start: Any) -> Any:
    del self
    return cute.less(start * 0, 1)


def test_a_step_with_the_token_that_is_fetched_before_the_append_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Attention, "_is_old", old_always)
    with pytest.raises((ConformanceError, Race)):
        checked(TWO, B=2, P=60, H=1)


def same(word: Any) -> Any:
    return word


@pytest.mark.parametrize(("name", "value"), [("LOW", 0x5432), ("HIGH", 0x5410), ("LOG2_E", 1.0), ("transposed", same)])
def test_a_mistake_in_an_order_or_a_factor_is_found(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    monkeypatch.setattr(module, name, value)
    with pytest.raises(ConformanceError):
        checked(TWO, B=2, P=60, H=1)


@pytest.mark.parametrize(
    ("name", "which", "wanted"),
    [
        ("nvvm.barrier0", 0, Race),
        ("cute_nvgpu.arch.warp_sync", 0, Race),  # behind the append
        ("cute_nvgpu.arch.warp_sync", 1, Race),  # before the ring is read
        ("cute_nvgpu.arch.warp_sync", 2, Race),  # before it is filled again
        ("nvvm.cp.async.wait.group", 0, MissingWait),
        ("nvvm.cp.async.commit.group", 0, MissingWait),
        ("nvvm.cp.async.commit.group", 2, MissingWait),
    ],
)
def test_a_missing_operation_is_named(name: str, which: int, wanted: Any) -> None:
    with pytest.raises(wanted) as found:
        launch(TWO, inputs(B=2, P=132, H=1), kernel=without(unsplit(TWO), name, which))
    assert "kernels_cute/" in found.value.site.location


def banks(lanes: list[tuple[int, int]]) -> set[int]:
    """The pieces of 16 bytes among the eight of all banks in which (row, piece) lie."""
    return {piece ^ row // 2 % 8 for row, piece in lanes}


def test_lanes_that_read_at_one_time_find_theirs_in_different_banks() -> None:
    """A quarter of a warp reads 16 bytes each: lane 4 i + j a key of row 2 i + x, a value of row 4 j + column."""
    for lanes in np.arange(32).reshape(4, 8).tolist():
        at = [(lane // 4, lane % 4) for lane in lanes]
        for x in range(2):
            for half in range(2):
                assert len(banks([(2 * i + x, 2 * j + half) for i, j in at])) == 8
        for column in range(4):
            assert len(banks([(4 * j + column, i) for i, j in at])) == 8


@pytest.mark.parametrize(
    "sizes", [{"head": 128}, {"queries": 8}, {"span": 128}, {"stages": 0}, {"stages": 1}, {"positions": 24}]
)
def test_what_has_no_kernel_is_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Tiles(**sizes)  # pyright: ignore[reportArgumentType]
