"""A decode step in one kernel on the executor: its results, its words, and what is missing if a barrier is."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import references, verdict
from conformance.reference import float64
from kernels_cute.decode.plan import Step
from kernels_cute.entries import TracedKernel, made
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.contract.artifact import TENSOR_MAPS, Form
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.cute.executor import MissingWait, Race
from toolchain.cute.executor.launches.entry import EntryLaunch
from toolchain.errors import UsageError

SMALL = {"L": 2, "C": 128, "X": 96, "V": 200, "CLUSTERS": 3, "UNITS": 16, "UNITS_APART": 32, "SLOTS": 5, "FLYING": 2}
TINY = {"L": 1, "C": 64, "X": 32, "V": 64, "CLUSTERS": 2, "UNITS": 16, "UNITS_APART": 16, "SLOTS": 4, "FLYING": 0}
ALONE = TINY | {"CLUSTERS": 1, "UNITS": 32, "UNITS_APART": 8}
# Clusters of 4: the fifth warp attends to nothing, and some blocks have more hidden units than have a place at a time.
# Clusters of 2: tiles of units are odd in number, and the ring has almost a layer's slots, so that it orders little.
FOURS = {
    "L": 1, "C": 320, "X": 96, "V": 72, "CLUSTERS": 6, "UNITS": 48, "UNITS_APART": 80, "SLOTS": 5, "FLYING": 2,
    "CLUSTER": 4,
}  # fmt: skip
PAIRS = {
    "L": 2, "C": 128, "X": 32, "V": 64, "CLUSTERS": 4, "UNITS": 8, "UNITS_APART": 120, "SLOTS": 12, "FLYING": 0,
    "CLUSTER": 2,
}  # fmt: skip
OP, F8, F8_LOGITS = "decode_step", "decode_step_weight_f8", "decode_step_weight_f8_logits"
CACHE_F8 = "_cache_f8"
TINY_F8 = TINY | {"C": 128, "CLUSTERS": 2, "UNITS": 32}


def _case(sizes: dict[str, int], positions: int, op: str = OP) -> Case:
    """The new token is at the last position of a cache as long as the model allows, and in the middle of another."""
    layers, width, units = sizes["L"], sizes["C"], 16 if F8 in op else 8
    blocks = _blocks(sizes)
    more = {
        "E": 3 * width, "F": 4 * width, "H": width // 64, "D": 64, "P": positions, "N": 1, "TWO": 2,
        "B": blocks, "S": 4 * layers * width + 2 * blocks, "W": width // 64, "G": 4 * width // units, "U": units,
        "I": 3 * width // 8, "J": 4 * width // 8, "EIGHT": 8, "K": sizes["V"] // 8,
    }  # fmt: skip
    made = {key: size for key, size in sizes.items() if key in "LCXV"} | more
    dims = {dim for param in ops()[op].params for dim in param.dims}
    return Case(op, {key: size for key, size in made.items() if key in dims}, "")


def _blocks(sizes: dict[str, int]) -> int:
    return sizes.get("CLUSTER", 8) * sizes["CLUSTERS"]


@functools.cache
def _spec(sizes: tuple[tuple[str, int], ...], op: str) -> tuple[EntrySpec, TracedKernel]:
    arrays = tuple(param.name for param in ops()[op].params if param.dims)
    spec = EntrySpec(op, op, "cute", "bf16", dict(sizes), aligned=arrays, contiguous=arrays)
    return spec, made(spec)


def _traced(sizes: dict[str, int], op: str = OP) -> tuple[EntrySpec, TracedKernel]:
    return _spec(tuple(sizes.items()), op)


def _step(sizes: dict[str, int], inputs: Inputs, kernel: Any = None, op: str = OP) -> dict[str, Any]:
    """Runs it as a launch of its entry does. Returns copies of all arrays."""
    arrays = {name: array.copy() for name, array in {**inputs.arrays, **inputs.outputs}.items()}
    spec, traced = _traced(sizes, op)
    form = Form(
        "ptx", "", TENSOR_MAPS, (traced.kernel.threads, 1, 1), traced.kernel.shared_bytes, maps=traced.maps,
        together=traced.together,
    )  # fmt: skip
    EntryLaunch(kernel or traced.kernel, spec, form, arrays, inputs.scalars, (_blocks(sizes), 1, 1)).run()
    return arrays


def _check(arrays: dict[str, Any], case: Case, inputs: Inputs) -> None:
    for name, pair in references(case, "bf16", inputs).items():
        found = verdict(case.op, "bf16", name, arrays[name], *pair)
        assert found.error <= found.bound, name
    assert not arrays["errors"].any()
    logits, blocks = arrays["logits"][0].astype(np.float32), arrays["values"][0]
    chosen = int(logits[: int(inputs.scalars["visible"])].argmax())
    assert blocks.max() == logits[chosen] and arrays["indices"][0][blocks == blocks.max()].min() == chosen
    assert arrays["chosen"] == chosen and arrays["after"] == arrays["positions"] + 1


@pytest.mark.parametrize(
    ("sizes", "positions", "op"),
    [
        (SMALL, 96, OP),
        (SMALL, 96, F8),
        (TINY_F8, 30, F8_LOGITS),
        (TINY, 1, OP),  # nothing was there before
        (TINY, 30, OP),  # some blocks have no position, and the cache ends within a slot
        (SMALL, 96, F8 + CACHE_F8),
        (TINY_F8, 30, F8_LOGITS + CACHE_F8),
        (TINY, 1, OP + CACHE_F8),
        (FOURS, 96, OP),
        (PAIRS, 20, OP),
    ],
)
def test_it_computes_a_step(sizes: dict[str, int], positions: int, op: str) -> None:
    """Where the cache is not filled it has NaN."""
    case = _case(sizes, positions, op)
    inputs = make_inputs(case, "bf16", seed=1)
    arrays = _step(sizes, inputs, op=op)
    _check(arrays, case, inputs)
    assert (arrays["launches"] == 1).all()


@pytest.mark.parametrize("op", [OP, F8])
def test_a_cache_in_8_bits_gets_what_the_models_ops_append(op: str) -> None:
    """The first layer's key and value are those of a cache in bf16, rounded, bit by bit."""
    sizes = TINY_F8 | {"X": 64}
    plain, rounded = (make_inputs(_case(sizes, 40, name), "bf16", seed=4) for name in (op, op + CACHE_F8))
    wanted = _step(sizes, plain, op=op)
    arrays = _step(sizes, replace(rounded, arrays=plain.arrays), op=op + CACHE_F8)
    heads = wanted["cache"][0, :, 20].reshape(4, 64)
    numbers, scales = float64.quantize_rows(heads)
    assert np.array_equal(arrays["cache"][0, :, 20].reshape(4, 64).astype(np.float64), numbers)
    assert np.array_equal(arrays["cache_scales"][0, :, :, 20].reshape(4), scales)


def test_the_next_launch_finds_its_sums_cleared() -> None:
    """Also with one cluster alone. Its kernel is text, as a bundle has it."""
    case, text = _case(ALONE, 32), str(_traced(ALONE)[1].kernel)
    inputs = make_inputs(case, "bf16", seed=2)
    first = _step(ALONE, inputs, text)
    _check(first, case, inputs)
    again = _step(ALONE, replace(inputs, outputs={name: first[name] for name in inputs.outputs}), text)
    assert np.array_equal(again["logits"], first["logits"]) and (again["launches"] == 2).all()


@pytest.mark.parametrize(
    ("sizes", "name", "which", "found"),
    [
        (TINY, "barrier", 1, Race),  # between a block's sums of rows and their reads
        (TINY, "mbarrier.wait", 7, (MissingWait, Race)),  # for a slot that is free
        (TINY, "mbarrier.wait", -4, MissingWait),  # for a slot that is full
        (TINY, "cluster.wait", 2, Race),  # before the first words
        (PAIRS, "barrier", 1, Race),
    ],
)
def test_a_barrier_or_a_wait_less_is_found(sizes: dict[str, int], name: str, which: int, found: Any) -> None:
    inputs = make_inputs(_case(sizes, 32), "bf16", seed=3)
    with pytest.raises(found):
        _step(sizes, inputs, without(_traced(sizes)[1].kernel, f"cute_nvgpu.arch.{name}", which))


def test_units_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(UsageError, match="4096 hidden units of 3072"):
        Step(clusters=16)
    with pytest.raises(UsageError, match="a ring of 3 slots"):
        Step(slots=3)
    with pytest.raises(UsageError):
        Step(positions=1001)
    with pytest.raises(UsageError, match="clusters of 4 blocks, 8 bits"):
        Step(clusters=24, cluster=4, bits=8)
