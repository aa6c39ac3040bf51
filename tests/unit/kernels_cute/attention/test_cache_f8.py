"""Attention of one token to a cache in 8-bit floats on the executor: its results as IR and as PTX, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernels_cute.attention.cache_f8_walk as module
from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import verdict
from conformance.reference import eager, float64
from kernels_cute.attention.cache_f8 import Tiles, spans, unsplit
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.contract.op import ops
from toolchain.cute import dsl as cute
from toolchain.cute.executor import MissingWait, OutOfBounds, Race, run
from toolchain.errors import ConformanceError, UsageError

SPANS, UNSPLIT = "grouped_decode_attention_f8", "decode_attention_unsplit_f8"
ONE, EIGHT = Tiles(span=128, warps=2), Tiles(queries=8, positions=32, span=128, warps=2)
WHOLE, RING = Tiles(span=0, warps=2), Tiles(span=0, warps=2, stages=3)


def inputs(op: str, tiles: Tiles, **sizes: int) -> Inputs:
    """Positions from the first to the last of the cache; behind each there is NaN, also for scales."""
    dims = {"D": tiles.head, **sizes}
    if op == SPANS:
        dims |= {"Z": -(-sizes["P"] // tiles.span), "TWO": 2}
    return make_inputs(Case(op, dims, ""), "bf16", seed=1)


def launch(op: str, tiles: Tiles, given: Inputs, *, as_ptx: bool = False, kernel: cute.Kernel | None = None) -> None:
    """Fills the outputs."""
    made = kernel or (spans if op == SPANS else unsplit)(tiles, op)
    arrays = {**given.arrays, **given.outputs}
    b, h, *rest = arrays["q"].shape
    grid = (h * -(-rest[0] // tiles.queries), b, given.outputs["partial"].shape[3]) if op == SPANS else (h, b)
    ptx = made.ptx("sm_90a") if as_ptx else ""
    run(made, (*(arrays[p.name] for p in ops()[op].params if p.dims), given.scalars["scale"]), grid, ptx=ptx)


def check(op: str, given: Inputs, before: Inputs) -> None:
    """As conformance does. Raises ConformanceError."""
    kept = {name: before.outputs[name] for name in ops()[op].updates or ("partial",)}
    arguments = {**before.arrays, **kept, **before.scalars}
    exact, usual = getattr(float64, op)(**arguments), getattr(eager, op)(**arguments, dtype="bf16")
    for param, wanted, near in zip(ops()[op].outputs, exact, usual, strict=True):
        stored = "bf16" if param.dtype == "T" else param.dtype
        verdict(op, stored, param.name, given.outputs[param.name], wanted, near)


def checked(op: str, tiles: Tiles, **sizes: int) -> None:
    given = inputs(op, tiles, **sizes)
    launch(op, tiles, given)
    check(op, given, inputs(op, tiles, **sizes))


@pytest.mark.parametrize(
    ("tiles", "sizes"),
    [
        (ONE, {"B": 3, "P": 300, "G": 2, "Q": 1}),  # spans without a position, and in part
        (ONE, {"B": 3, "P": 4, "G": 1, "Q": 1}),  # fewer positions than a step
        (EIGHT, {"B": 3, "P": 256, "G": 1, "Q": 3}),  # rows of queries that repeat the last
        (EIGHT, {"B": 2, "P": 132, "G": 2, "Q": 9}),  # two blocks of queries
        (Tiles(head=128, queries=8, span=512, warps=3), {"B": 2, "P": 100, "G": 1, "Q": 2}),
        (Tiles(positions=64, span=512, warps=1), {"B": 1, "P": 200, "G": 1, "Q": 1}),
        (Tiles(head=128, queries=8, span=128, warps=2, stages=2), {"B": 3, "P": 200, "G": 1, "Q": 2}),
        (Tiles(positions=32, span=512, warps=1, stages=3), {"B": 2, "P": 200, "G": 2, "Q": 1}),
    ],
    ids=["one", "short", "several", "many", "wide", "long", "wide_ring", "ring"],
)
def test_it_agrees_with_float64(tiles: Tiles, sizes: dict[str, int]) -> None:
    checked(SPANS, tiles, **sizes)


@pytest.mark.parametrize(
    ("tiles", "sizes"),
    [
        (WHOLE, {"B": 4, "P": 100, "H": 2}),
        (Tiles(span=0, warps=4, positions=32), {"B": 2, "P": 36, "H": 1}),  # warps without a step
        (Tiles(head=128, span=0, warps=2), {"B": 2, "P": 40, "H": 1}),
        (RING, {"B": 4, "P": 132, "H": 2}),  # the ring goes round
    ],
    ids=["all", "idle", "wide", "ring"],
)
def test_the_token_is_appended_and_attended_to(tiles: Tiles, sizes: dict[str, int]) -> None:
    checked(UNSPLIT, tiles, **sizes)


@pytest.mark.parametrize(
    ("op", "tiles", "sizes"),
    [
        (SPANS, EIGHT, {"B": 2, "P": 140, "G": 1, "Q": 3}),
        (SPANS, ONE, {"B": 2, "P": 60, "G": 1, "Q": 1}),
        (UNSPLIT, WHOLE, {"B": 2, "P": 60, "H": 2}),
        (UNSPLIT, RING, {"B": 2, "P": 132, "H": 1}),
    ],
)
def test_its_ptx_computes_the_same(op: str, tiles: Tiles, sizes: dict[str, int]) -> None:
    ir, ptx = (inputs(op, tiles, **sizes) for _ in range(2))
    launch(op, tiles, ir)
    launch(op, tiles, ptx, as_ptx=True)
    assert {name: array.tobytes() for name, array in ir.outputs.items()} == {
        name: array.tobytes() for name, array in ptx.outputs.items()
    }


def test_large_queries_and_weights_of_all_sizes_keep_their_bits() -> None:
    """Queries beyond f16; a value whose scale is 2^-40 of another's, which has no weight beside it."""
    for scale in (1.0, 2.0**-20, 2.0**20):
        given, before = (inputs(SPANS, ONE, B=2, P=60, G=1, Q=1) for _ in range(2))
        for one in (given, before):
            multiply(one.arrays["q"], scale)
            multiply(one.arrays["k_scales"], 1 / scale)
            multiply(one.arrays["k_scales"][:, :, 7], 8)
            multiply(one.arrays["v_scales"][:, :, 7], 2.0**-40)
        launch(SPANS, ONE, given)
        check(SPANS, given, before)


def multiply(array: np.ndarray[Any, Any], factor: float) -> None:
    array[:] = array.astype(np.float32) * np.float32(factor)


def scales_swapped(self: Any, first: Any, *, real: Any = module.Attention.walk) -> None:
    self.scales = self.scales[::-1]
    real(self, first)


def same(word: Any) -> Any:
    return word


def old_always(self: Any, start: Any) -> Any:
    del self
    return cute.less(start * 0, 1)


def unclamped(self: Any, cache: Any, position: Any) -> Any:
    return cache[self.sequence, position, self.head, None]


@pytest.mark.parametrize(
    ("name", "value"),
    [("FIRST_BYTES", 0x5410), ("LAST_BYTES", 0x5140), ("LOG2_E", 1.0), ("transposed", same)],
)
def test_a_mistake_in_an_order_or_a_factor_is_found(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    monkeypatch.setattr(module, name, value)
    with pytest.raises(ConformanceError):
        checked(SPANS, EIGHT, B=2, P=60, G=1, Q=3)


def test_scales_of_keys_for_those_of_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Attention, "walk", scales_swapped)
    with pytest.raises(ConformanceError):
        checked(SPANS, ONE, B=2, P=60, G=1, Q=1)


def test_positions_behind_the_token_are_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Attention, "_row", unclamped)
    with pytest.raises(OutOfBounds):
        checked(SPANS, ONE, B=2, P=60, G=1, Q=1)
    with pytest.raises(ConformanceError):  # NaN times no weight
        checked(SPANS, ONE, B=3, P=64, G=1, Q=1)


def test_a_step_with_the_token_that_is_fetched_before_the_append_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Attention, "_is_old", old_always)
    with pytest.raises((ConformanceError, Race)):
        checked(UNSPLIT, RING, B=2, P=60, H=1)


def test_a_unit_that_is_not_the_largest_weight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights times scales of 2^-30 are no numbers of f16."""
    monkeypatch.setattr(module, "TINY", 1.0)
    given, before = (inputs(SPANS, ONE, B=2, P=60, G=1, Q=1) for _ in range(2))
    for one in (given, before):
        multiply(one.arrays["v_scales"], 2.0**-30)
    launch(SPANS, ONE, given)
    with pytest.raises(ConformanceError):
        check(SPANS, given, before)


@pytest.mark.parametrize(
    ("op", "tiles", "name", "which", "sizes", "wanted"),
    [
        (SPANS, ONE, "nvvm.barrier0", 0, {"B": 1, "P": 60, "G": 1, "Q": 1}, Race),
        (UNSPLIT, WHOLE, "nvvm.barrier0", 0, {"B": 1, "P": 60, "H": 1}, Race),
        (UNSPLIT, WHOLE, "cute_nvgpu.arch.warp_sync", 0, {"B": 2, "P": 60, "H": 1}, Race),  # behind the append
        (UNSPLIT, RING, "cute_nvgpu.arch.warp_sync", 1, {"B": 2, "P": 132, "H": 1}, Race),  # of the ring
        (UNSPLIT, RING, "nvvm.cp.async.wait.group", 0, {"B": 2, "P": 132, "H": 1}, MissingWait),
        (UNSPLIT, RING, "nvvm.cp.async.commit.group", 2, {"B": 2, "P": 132, "H": 1}, MissingWait),
    ],
)
def test_a_missing_operation_is_named(
    op: str, tiles: Tiles, name: str, which: int, sizes: dict[str, int], wanted: Any
) -> None:
    kernel = without((spans if op == SPANS else unsplit)(tiles, op), name, which)
    with pytest.raises(wanted) as found:
        launch(op, tiles, inputs(op, tiles, **sizes), kernel=kernel)
    assert "kernels_cute/" in found.value.site.location


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"head": 96}, "a head of 96 numbers"),
        ({"queries": 4}, "a block of 4 queries"),
        ({"positions": 24}, "a step of 24 positions"),
        ({"positions": 0}, "a step of 0 positions"),
        ({"warps": 33}, "1056 threads"),
        ({"stages": 1}, "a ring of 1 stages"),
    ],
)
def test_what_has_no_kernel_is_refused(sizes: dict[str, int], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Tiles(**sizes)  # pyright: ignore[reportArgumentType]
