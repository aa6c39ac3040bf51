"""A decode step of eight texts in one kernel on the executor: its results, and what is missing if a barrier is."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.cases import Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import references, verdict
from kernels_cute.entries import TracedKernel, made
from kernels_cute.texts.plan import Step
from tests.unit.toolchain.cute.executor.mutate import without
from toolchain.contract.artifact import TENSOR_MAPS, Form
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.cute.executor import Deadlock, MissingWait, Race
from toolchain.cute.executor.launches.entry import EntryLaunch
from toolchain.errors import UsageError

OP, F8, F8_LOGITS = "decode_step_texts", "decode_step_texts_weight_f8", "decode_step_texts_weight_f8_logits"
SMALL = {"L": 1, "C": 128, "X": 40, "V": 200, "SLOTS": 5, "FLYING": 2}
SMALL_F8 = SMALL | {"V": 208}


def _case(sizes: dict[str, int], positions: int, op: str = OP, texts: int = 8) -> Case:
    """The first text is at the last position of its cache, the last one has nothing before it."""
    layers, width = sizes["L"], sizes["C"]
    more = {
        "E": 3 * width, "F": 4 * width, "H": width // 64, "D": 64, "P": positions, "N": texts, "TWO": 2,
        "B": width // 8, "S": 32 * layers * width, "W": width // 64, "G": width // 16, "U": 64,
        "I": 3 * width // 8, "J": 4 * width // 8, "EIGHT": 8, "K": sizes["V"] // 8,
    }  # fmt: skip
    made = {key: size for key, size in sizes.items() if key in "LCXV"} | more
    dims = {dim for param in ops()[op].params for dim in param.dims}
    return Case(op, {key: size for key, size in made.items() if key in dims}, "")


@functools.cache
def _spec(sizes: tuple[tuple[str, int], ...], op: str = OP) -> tuple[EntrySpec, TracedKernel]:
    arrays = tuple(param.name for param in ops()[op].params if param.dims)
    spec = EntrySpec(op, op, "cute", "bf16", dict(sizes), aligned=arrays, contiguous=arrays)
    return spec, made(spec)


def _step(sizes: dict[str, int], inputs: Inputs, kernel: Any = None, op: str = OP) -> dict[str, Any]:
    """Runs it as a launch of its entry does. Returns copies of all arrays."""
    arrays = {name: array.copy() for name, array in {**inputs.arrays, **inputs.outputs}.items()}
    spec, traced = _spec(tuple(sizes.items()), op)
    form = Form(
        "ptx", "", TENSOR_MAPS, (traced.kernel.threads, 1, 1), traced.kernel.shared_bytes, maps=traced.maps,
        together=traced.together,
    )  # fmt: skip
    EntryLaunch(kernel or traced.kernel, spec, form, arrays, inputs.scalars, (sizes["C"] // 8, 1, 1)).run()
    return arrays


def _check(arrays: dict[str, Any], case: Case, inputs: Inputs) -> None:
    for name, pair in references(case, "bf16", inputs).items():
        found = verdict(case.op, "bf16", name, arrays[name], *pair)
        assert found.error <= found.bound, name
    assert not arrays["errors"].any()
    visible = int(inputs.scalars["visible"])
    for logits, values, indices in zip(arrays["logits"], arrays["values"], arrays["indices"], strict=True):
        seen = logits[:visible].astype(np.float32)
        assert values.max() == seen.max() and indices[values == values.max()].min() == seen.argmax()


def test_it_computes_a_step_of_each_text_and_the_next_launch_finds_its_sums_cleared() -> None:
    """Where a cache is not filled it has NaN. The kernel is text, as a bundle has it."""
    case, text = _case(SMALL, 37), str(_spec(tuple(SMALL.items()))[1].kernel)
    inputs = make_inputs(case, "bf16", seed=1)
    first = _step(SMALL, inputs, text)
    _check(first, case, inputs)
    again = _step(SMALL, replace(inputs, outputs={name: first[name] for name in inputs.outputs}), text)
    assert np.array_equal(again["logits"], first["logits"]) and (again["launches"] == 2).all()


@pytest.mark.parametrize(
    ("sizes", "op", "texts"),
    [
        (SMALL | {"L": 2, "X": 20}, OP, 3),
        (SMALL_F8 | {"L": 2, "X": 20}, F8, 8),
        (SMALL_F8 | {"L": 2, "X": 20, "V": 544}, F8_LOGITS, 2),  # logits in two rounds
    ],
)
def test_it_walks_layers(sizes: dict[str, int], op: str, texts: int) -> None:
    """Of eight texts and of fewer, over weights of 16 and of 8 bits."""
    case = _case(sizes, 20, op, texts)
    inputs = make_inputs(case, "bf16", seed=2)
    _check(_step(sizes, inputs, op=op), case, inputs)


def test_a_barrier_less_is_found_where_weights_have_8_bits() -> None:
    """At the end of a layer: the scale of the next layer's x, beside sums of rows."""
    sizes = SMALL_F8 | {"L": 2, "X": 20}
    inputs = make_inputs(_case(sizes, 20, F8, 2), "bf16", seed=3)
    kernel = _spec(tuple(sizes.items()), F8)[1].kernel
    with pytest.raises(Race):
        _step(sizes, inputs, without(kernel, "cute_nvgpu.arch.barrier", 4), F8)


@pytest.mark.parametrize(
    ("name", "which", "found"),
    [
        ("barrier", 1, Race),  # between a block's sums of rows and their reads
        ("barrier", 2, Race),  # between what the warps attended to and their reads
        ("barrier", 3, Race),  # between the sums of hidden units and their reads
        ("barrier", 6, Race),  # between those of a round of logits and their reads
        ("mbarrier.wait", 6, (Race, Deadlock)),  # for a slot of keys and values that is free
        ("mbarrier.wait", 31, MissingWait),  # for one that is full
        ("cluster.wait", 2, Race),  # before the first words
    ],
)
def test_a_barrier_or_a_wait_less_is_found(name: str, which: int, found: Any) -> None:
    inputs = make_inputs(_case(SMALL, 40), "bf16", seed=3)
    kernel = _spec(tuple(SMALL.items()))[1].kernel
    with pytest.raises(found):
        _step(SMALL, inputs, without(kernel, f"cute_nvgpu.arch.{name}", which))


def test_sizes_without_a_kernel_are_refused() -> None:
    with pytest.raises(UsageError, match="a ring of 3 slots"):
        Step(slots=3)
    with pytest.raises(UsageError, match="a width of 100"):
        Step(width=100)
