"""An entry made from the parts of a kernel source."""

from __future__ import annotations

import dataclasses

import pytest

from kernels_mlir import SOURCE
from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library
from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import DivByAttr, RoundingMode
from toolchain.tileir.dialect.control import EntryOp, ModuleOp
from toolchain.tileir.dialect.ops import AssumeOp, ConstantOp, FToFOp, LoadViewTkoOp, MmaFOp, TanHOp
from toolchain.tileir.numbers import elements_of
from toolchain.tileir.specialize import specialize


def spec_of(symbol: str) -> EntrySpec:
    return next(spec for spec in SOURCE.entries() if spec.symbol == symbol)


def module_of(spec: EntrySpec, part: str = "", old: str = "", new: str = "") -> ModuleOp:
    """The entry's module; `old` in the file `part` replaced by `new`, once."""
    texts = SOURCE.library.texts
    if part:
        assert texts[part].count(old) >= 1
        texts[part] = texts[part].replace(old, new, 1)
    return specialize(Library(texts), spec, parse_version(BYTECODE))


def found(module: ModuleOp | EntryOp, kind: type) -> list:
    return [op for op in module.walk() if isinstance(op, kind)]


def test_sizes_dtype_and_symbol() -> None:
    spec = spec_of("linear_16x64x64_f16")
    module = module_of(spec)
    assert list(module.entries) == [spec.symbol]
    (product,) = found(module, MmaFOp)
    assert product.lhs.type == t.TileType((16, 64), t.f16)
    assert product.rhs.type == t.TileType((64, 64), t.f16)
    assert product.result.type == t.TileType((16, 64), t.f32)
    (step,) = [op for op in found(module, ConstantOp) if op.result.name_hint == "BK"]
    assert elements_of(step.value) == [64]


def test_casts_to_the_same_type_go_away_and_only_those() -> None:
    assert found(module_of(spec_of("gelu_1024_f32")), FToFOp) == []
    assert len(found(module_of(spec_of("gelu_1024_bf16")), FToFOp)) == 2


def test_tf32_rounds_the_operands_of_products() -> None:
    module = module_of(spec_of("attention_D64_tf32"))
    for product in found(module, MmaFOp):
        for operand in product.operands[:2]:
            assert isinstance(operand.owner, FToFOp)
            assert operand.type.element_type == t.tf32
            assert operand.owner.from_.type.element_type == t.f32
    assert all(op.tile.type.element_type == t.f32 for op in found(module, LoadViewTkoOp))


@pytest.mark.parametrize(
    ("dtype", "rounding"),
    [
        ("bf16", RoundingMode.APPROX),
        ("f16", RoundingMode.APPROX),
        ("f32", RoundingMode.FULL),
        ("tf32", RoundingMode.FULL),
    ],
)
def test_an_approximate_tanh_is_for_results_of_16_bits(dtype: str, rounding: RoundingMode) -> None:
    (tanh,) = found(module_of(spec_of(f"linear_gelu_any_{dtype}")), TanHOp)
    assert tanh.rounding_mode.data is rounding


def test_what_the_entry_promises_is_assumed_of_its_arguments() -> None:
    module = module_of(dataclasses.replace(spec_of("linear_any_f32"), aligned=("x",), multiples={"N": 16}))
    divided = {
        op.value.name_hint: op.predicate.divisor
        for op in found(module, AssumeOp)
        if isinstance(op.predicate, DivByAttr)
    }
    assert divided == {"x_ptr": 16, "x_row_given": 4, "weight_n": 16, "bias_n": 16, "out_n": 16}


def test_the_steps_of_a_strided_view_follow_the_constants() -> None:
    spec = dataclasses.replace(
        spec_of("linear_128x192x64_bf16"), constants={"BM": 64, "BN": 256, "BR": 32, "BK": 128, "GROUP": 1}
    )
    loads = found(module_of(spec), LoadViewTkoOp)
    views = [load.view.type for load in loads if isinstance(load.view.type, t.StridedViewType)]
    assert [(view.tile_shape, view.traversal_strides) for view in views] == [((256,), (32,)), ((128, 256), (128, 32))]


def test_a_constant_that_no_part_uses() -> None:
    spec = dataclasses.replace(spec_of("gelu_1024_bf16"), constants={"R": 1, "BN": 1024, "BX": 4})
    with pytest.raises(SourceError, match=r"kernels_mlir/gelu.mlir:\d+:\d+: error: @gelu does not use the constant BX"):
        module_of(spec)


def test_a_constant_that_the_entry_lacks() -> None:
    spec = dataclasses.replace(spec_of("gelu_1024_bf16"), constants={"R": 1}, grid=("1", "1", "1"))
    with pytest.raises(SourceError, match=r"kernels_mlir/products.mlir:\d+:\d+: error: the entry has no constant BN"):
        module_of(spec)


def test_an_error_in_a_fragment_points_into_its_file() -> None:
    part = "kernels_mlir/products.mlir"
    with pytest.raises(SourceError) as caught:
        module_of(spec_of("linear_gelu_any_bf16"), part, "tanh %inner rounding<approx>", "tanh %inner rounding<zero>")
    text = SOURCE.library.texts[part]
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "tanh %inner" in line)
    assert str(caught.value).startswith(f"{part}:{line}:")
    assert "rounding<zero>" in str(caught.value), "the line is shown"


def test_a_latency_is_given_to_the_loads_that_are_multiplied_in_a_loop() -> None:
    hints = {"sm_90": {"occupancy": 2, "latency": 3}, "sm_100": {"latency": 4}}
    module = module_of(dataclasses.replace(spec_of("linear_any_bf16"), hints=hints))
    (entry,) = module.entries.values()
    assert entry.optimization_hints.data == (("sm_90", (("occupancy", 2),)), ("sm_100", ()))
    latency = (("sm_90", (("latency", 3),)), ("sm_100", (("latency", 4),)))
    given = [op.optimization_hints and op.optimization_hints.data for op in found(module, LoadViewTkoOp)]
    assert given == [None, latency, latency], "not the bias, which is loaded once a tile"


def test_a_latency_that_there_is_not() -> None:
    with pytest.raises(SourceError, match="gelu_1024_bf16: a latency must be from 1 to 10, not 11"):
        module_of(dataclasses.replace(spec_of("gelu_1024_bf16"), hints={"sm_90": {"latency": 11}}))
