"""The form of an artifact: tensor maps, and what no launch could do with it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from toolchain.contract.artifact import TENSOR_MAPS, Form, TensorMap, dump, load, ptx, tile_ir
from toolchain.contract.entry import CALLING_CONVENTION, EntrySpec
from toolchain.errors import LaunchError, UsageError

MAPS = (TensorMap("x", (128, 64), 128), TensorMap("weight", (64, 64), 128))
SPEC = EntrySpec("linear_f16", "linear", "cute", "f16", aligned=("x", "weight"))


def test_tensor_maps_are_a_convention_of_their_own_and_survive_the_cache() -> None:
    made = ptx("code", block=(128, 1, 1), shared_bytes=4, waits=True, maps=MAPS)
    assert (made.form.convention, made.form.maps) == (TENSOR_MAPS, MAPS)
    assert load(dump(made)) == made


def test_the_ir_of_ptx_survives_the_cache() -> None:
    made = ptx("code", block=(128, 1, 1), ir="module")
    assert (load(dump(made)), made.ir) == (made, b"module")
    assert load(dump(ptx("code", block=(1, 1, 1)))).ir == b""


def test_a_form_without_maps_is_written_as_before() -> None:
    form = ptx("code", block=(128, 1, 1)).form
    assert form.convention == CALLING_CONVENTION
    assert "maps" not in form.to_json()
    assert Form.from_json(json.loads(json.dumps(form.to_json()))) == form
    assert "maps" not in tile_ir(b"", "13.4").form.to_json()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"convention": "c"}, "no calling convention 'c'"),
        ({"convention": CALLING_CONVENTION}, "2 tensor maps"),
        ({"maps": ()}, "0 tensor maps"),
    ],
)
def test_a_form_that_cannot_be_launched_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        replace(ptx("", block=(1, 1, 1), maps=MAPS).form, **changed)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("x", (64,)), "2 to 5 dimensions"),
        (("x", (64, 257)), "each 1 to 256"),
        (("x", (64, 64), 96), "swizzle 96"),
        (("x", (64, 64), 128, 1), "l2_promotion 1"),
    ],
)
def test_a_box_that_tma_cannot_move_is_refused(arguments: tuple[Any, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        TensorMap(*arguments)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (TensorMap("residual", (64, 64)), "no array of linear"),
        (TensorMap("x", (1, 64, 64)), "has not the 3 dimensions"),
        (TensorMap("out", (64, 64)), "out aligned to 16 bytes"),
    ],
)
def test_maps_that_do_not_fit_the_entry_are_refused(made: TensorMap, why: str) -> None:
    ptx("", block=(1, 1, 1), maps=MAPS).form.check_maps(SPEC)
    with pytest.raises(UsageError, match=why):
        ptx("", block=(1, 1, 1), maps=(made,)).form.check_maps(SPEC)


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(TypeError, match="integers"):
        TensorMap.from_json({"array": "x", "box": [64, "64"], "swizzle": 0, "l2_promotion": 0})


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [((2, 8), (2**31 - 8, 1)), ((2**16, 2**15), (2**15, 1)), ((0, 8), (2**40, 1)), ((), ())],
)
def test_the_last_element_that_32_bits_count_to_is_reached(sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    ptx("", block=(1, 1, 1), index_bits=32).form.check_reach("k", "x", sizes, strides)


def test_an_array_beyond_32_bits_is_refused_by_name() -> None:
    form = ptx("", block=(1, 1, 1), index_bits=32).form
    with pytest.raises(LaunchError, match=r"k: the last element of x is 2147483648 elements after.*in 32 bits"):
        form.check_reach("k", "x", (2, 8), (2**31 - 7, 1))
    ptx("", block=(1, 1, 1)).form.check_reach("k", "x", (2, 8), (2**31, 1))
    moved = ptx("", block=(1, 1, 1), maps=MAPS, index_bits=32).form
    moved.check_reach("k", MAPS[0].array, (2, 8), (2**31, 1))  # TMA counts for itself


def test_the_bits_of_an_index_are_stored_with_the_bundle() -> None:
    form = ptx("", block=(1, 1, 1), index_bits=32).form
    assert Form.from_json(form.to_json()) == form
    assert "index_bits" not in ptx("", block=(1, 1, 1)).form.to_json()
    with pytest.raises(UsageError, match="32 or 64 bits, not in 16"):
        ptx("", block=(1, 1, 1), index_bits=16)


def test_blocks_that_run_together_are_stored_with_the_bundle() -> None:
    form = ptx("", block=(32, 1, 1), together=8).form
    assert Form.from_json(form.to_json()) == form
    assert "together" not in ptx("", block=(1, 1, 1)).form.to_json()
    with pytest.raises(TypeError, match="together is an integer"):
        Form.from_json({**form.to_json(), "together": "8"})
    for blocks in (9, -1):
        with pytest.raises(UsageError, match=f"clusters of {blocks} blocks"):
            ptx("", block=(32, 1, 1), together=blocks)
    with pytest.raises(UsageError, match="tile-ir in clusters"):
        Form("tile-ir", "13.4", together=8)
