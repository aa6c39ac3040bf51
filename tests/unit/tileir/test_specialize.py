"""A kernel file made to an entry."""

from __future__ import annotations

import dataclasses

import pytest

from kernels_mlir import SOURCE
from toolchain.entry import EntrySpec
from toolchain.errors import SourceError
from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import BoundedAttr, DivByAttr, RoundingMode
from toolchain.tileir.dialect.control import EntryOp, ModuleOp
from toolchain.tileir.dialect.ops import AssumeOp, ConstantOp, FToFOp, LoadViewTkoOp, MmaFOp, TanHOp
from toolchain.tileir.specialize import set_sizes, specialize
from toolchain.tileir.text.numbers import elements_of
from toolchain.tileir.text.printer import print_module


def spec_of(symbol: str) -> EntrySpec:
    return next(spec for spec in SOURCE.entries() if spec.symbol == symbol)


def module_of(spec: EntrySpec, old: str = "", new: str = "") -> ModuleOp:
    text, path = SOURCE.text(spec)
    assert old in text
    return specialize(text.replace(old, new, 1) if old else text, filename=path.name, spec=spec)


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
    ("symbol", "rounding"),
    [
        ("linear_gelu_any_bf16", RoundingMode.APPROX),
        ("linear_gelu_any_f16", RoundingMode.APPROX),
        ("linear_gelu_any_f32", RoundingMode.FULL),
        ("linear_gelu_any_tf32", RoundingMode.FULL),
    ],
)
def test_an_approximate_tanh_is_for_results_of_16_bits(symbol: str, rounding: RoundingMode) -> None:
    (tanh,) = found(module_of(spec_of(symbol)), TanHOp)
    assert tanh.rounding_mode.data is rounding


def test_alignment_is_assumed_of_the_pointer_and_the_outer_strides() -> None:
    spec = dataclasses.replace(spec_of("attention_D64_bf16"), aligned=("k",), hints={})
    module = module_of(spec)
    (entry,) = module.entries.values()
    divided = {
        op.value.name_hint: op.predicate.divisor
        for op in found(module, AssumeOp)
        if isinstance(op.predicate, DivByAttr)
    }
    assert divided == {"k": 16, "k_s0": 8, "k_s1": 8, "k_s2": 8}
    for op in found(module, AssumeOp):  # what the kernel itself assumes is of the aligned value
        if isinstance(op.predicate, BoundedAttr) and op.result.name_hint in ("k0", "k1", "k2"):
            assert isinstance(op.value.owner, AssumeOp)
    assert entry.optimization_hints is None


def test_sizes_are_assumed_to_be_multiples_of_what_the_entry_says() -> None:
    module = module_of(dataclasses.replace(spec_of("linear_any_f32"), multiples={"K": 32, "N": 16}))
    divided = {
        op.value.name_hint: op.predicate.divisor
        for op in found(module, AssumeOp)
        if isinstance(op.predicate, DivByAttr)
    }
    assert divided == {"x_k": 32, "w_k": 32, "w_n": 16, "bias_n": 16, "out_n": 16}


def test_sizes_that_are_compiled_in_are_constants_wherever_the_arguments_were() -> None:
    spec = dataclasses.replace(spec_of("linear_any_f32"), sizes={"N": 96}, multiples={"N": 32})
    (entry,) = module_of(spec).entries.values()
    arguments = {argument.name_hint: argument for argument in entry.body.block.args}
    assert not any(arguments[name].uses for name in ("w_n", "bias_n", "out_n")), "the sizes called N"
    assert all(arguments[name].uses for name in ("x_m", "x_k", "x_stride", "w_stride"))
    known = [op.result for op in found(entry, ConstantOp) if elements_of(op.value) == [96]]
    assert len(known) == 3 and all(value.uses for value in known)


def test_sizes_are_of_an_entry_with_the_ops_arguments() -> None:
    (entry,) = module_of(spec_of("gelu_1024_bf16")).entries.values()
    spec = dataclasses.replace(spec_of("linear_any_f32"), sizes={"N": 96})
    with pytest.raises(SourceError, match="linear_any_f32: it has 10 arguments, op linear has 18"):
        set_sizes(entry, spec)


def test_hints() -> None:
    spec = dataclasses.replace(
        spec_of("gelu_1024_bf16"), hints={"sm_90": {"occupancy": 2, "num_ctas": 2}, "default": {}}
    )
    (entry,) = module_of(spec).entries.values()
    assert entry.optimization_hints.data == (("sm_90", (("occupancy", 2), ("num_cta_in_cga", 2))), ("default", ()))


def test_the_steps_of_a_strided_view_are_set_by_its_name() -> None:
    spec = dataclasses.replace(
        spec_of("linear_128x192x64_bf16"), constants={"BM": 64, "BN": 256, "BR": 32, "BK": 128, "GROUP": 1}
    )
    loads = found(module_of(spec), LoadViewTkoOp)
    views = [load.view.type for load in loads if isinstance(load.view.type, t.StridedViewType)]
    assert [(view.tile_shape, view.traversal_strides) for view in views] == [((256,), (32,)), ((128, 256), (128, 32))]


_NARROW = "!out_part_1xBN = !cuda_tile.partition_view<tile=(1x512)"
_ROW = "!row_1xBN = !cuda_tile.tile<1x1024x!elem>"
_BIAS = "!bias_part_BN_every_BR = !cuda_tile.strided_view<tile=(128), traversal_strides=[64]"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("!out_part_1xBN = !cuda_tile.partition_view<tile=(1x1024)", _NARROW, "512 for BN, which is 1024 elsewhere"),
        (_ROW, "!row_1xBN = !cuda_tile.tile<2x1024x!elem>", "has 2 for 1"),
        (_ROW, "!row_1xBN = !cuda_tile.tile<1024x!elem>", "names 2 sizes, its type has 1"),
        ("!ptr = ", "!other_BN = i32\n!ptr = ", "named for its sizes but is i32"),
        ("!ptr = ", "!other_BNxBQ = !cuda_tile.tile<1024x2xf32>\n!ptr = ", "no constant BQ"),
        ("%x_unit: !int,", "", "arguments, op softmax has 10"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit(old: str, new: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        module_of(spec_of("softmax_1024_bf16"), old, new)
    assert str(caught.value).startswith("softmax.mlir:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (_BIAS, _BIAS.replace("[64]", "[32]"), "32 for BR, which is 64 elsewhere|64 for BR, which is 32 elsewhere"),
        ("bias_part_BN_every_BR", "bias_part_BN_every_BRxBR", "names 2 sizes, its type has 1"),
        ("bias_part_BN_every_BR", "bias_part_BN_every_BQ", "no constant BQ"),
        ("bias_part_BN_every_BR", "bias_part_BN", "a strided view, and nothing else"),
        ("!bias_BR = ", "!bias_BR_every_BR = ", "a strided view, and nothing else"),
    ],
)
def test_steps_that_do_not_fit(old: str, new: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        module_of(spec_of("linear_128x192x64_bf16"), old, new)


@pytest.mark.parametrize(
    ("value", "message"),
    [("i32: [1, 2]> : tile<2xi32", "must be a scalar integer, not tile<2xi32>"), ("i8: 1> : tile<i8", "fit into i8")],
)
def test_a_constant_that_cannot_hold_the_number(value: str, message: str) -> None:
    spec = dataclasses.replace(spec_of("gelu_1024_bf16"), constants={"R": 1, "BN": 1024, "BX": 256})
    with pytest.raises(SourceError, match=rf"^gelu\.mlir:\d+:\d+: error: %BX .*{message}"):
        module_of(spec, ") {\n", f") {{\n    %BX = constant <{value}>\n")


@pytest.mark.parametrize(("number", "kind", "value"), [(1, "i1", "true"), (255, "i8", "-1"), (128, "i8", "-128")])
def test_a_constant_takes_all_that_its_bits_hold(number: int, kind: str, value: str) -> None:
    spec = dataclasses.replace(spec_of("gelu_1024_bf16"), constants={"R": 1, "BN": 1024, "BX": number})
    module = module_of(spec, ") {\n", f") {{\n    %BX = constant <{kind}: 0> : tile<{kind}>\n")
    assert f"%BX = constant <{kind}: {value}> : tile<{kind}>" in print_module(module)


def test_a_constant_that_nothing_is_named_for() -> None:
    spec = dataclasses.replace(spec_of("gelu_1024_bf16"), constants={"R": 1, "BN": 1024, "BX": 4})
    with pytest.raises(SourceError, match="nothing in this file is named BX"):
        module_of(spec)


def test_a_latency_is_given_to_the_loads_that_are_multiplied_in_a_loop() -> None:
    hints = {"sm_90": {"occupancy": 2, "latency": 3}, "sm_100": {"latency": 4}}
    module = module_of(dataclasses.replace(spec_of("attention_D64_anchored_bf16"), hints=hints))
    (entry,) = module.entries.values()
    assert entry.optimization_hints.data == (("sm_90", (("occupancy", 2),)), ("sm_100", ()))
    latency = (("sm_90", (("latency", 3),)), ("sm_100", (("latency", 4),)))
    by_threads = (("default", (("allow_tma", False),)),)
    given = [op.optimization_hints and op.optimization_hints.data for op in found(module, LoadViewTkoOp)]
    assert given == [None, *[latency] * 4, *[by_threads] * 2], "the queries, two loops, the second walk"


def test_hints_that_mean_nothing() -> None:
    spec = spec_of("gelu_1024_bf16")
    with pytest.raises(SourceError, match="gelu_1024_bf16: no loop multiplies what it loads"):
        module_of(dataclasses.replace(spec, hints={"sm_90": {"latency": 3}}))
    with pytest.raises(SourceError, match="gelu_1024_bf16: a latency is from 1 to 10, not 11"):
        module_of(dataclasses.replace(spec, hints={"sm_90": {"latency": 11}}))
    with pytest.raises(SourceError, match="gelu_1024_bf16: no hint is called warps; there are occupancy, num_ctas"):
        module_of(dataclasses.replace(spec, hints={"sm_90": {"warps": 4}}))
