"""Text that parses, text that does not, and the places that errors point to."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.errors import SourceError
from toolchain.knobs import ROOT
from toolchain.tileir import location, text
from toolchain.tileir.compose.sample import sample
from toolchain.tileir.dialect.ops import OPS
from toolchain.tileir.dialect.verify import verify
from toolchain.tileir.source import Source
from toolchain.tileir.text.formats import FORMATS
from toolchain.tileir.text.lexer import Token, tokenize
from toolchain.tileir.text.parser import IRREGULAR

# The files of the kernel source that have a kernel.
KERNELS = [path for path in sorted((ROOT / "kernels_mlir").glob("*.mlir")) if "\nkernel @" in path.read_text()]

GOOD = """\
// a comment
!elem = f32
!row = !cuda_tile.tile<4x!elem>
cuda_tile.module @m {
  entry @k(%p: !cuda_tile.tile<ptr<f32>>, %n: tile<i32>) optimization_hints=<sm_90 = {occupancy = 2}, default = {}> {
    %a = constant <f32: [1.0, 2.5e-1, 0x7F800000, -3]> : !row
    %b = cuda_tile.addf %a, %a rounding<zero> flush_to_zero : tile<4xf32>
    %v = make_tensor_view %p, shape = [%n, 8], strides = [%n, 1] : tile<i32> -> tensor_view<?x8xf32, strides=[?,1]>
    %s:2 = get_tensor_shape %v : tensor_view<?x8xf32, strides=[?,1]> -> tile<i32>
    %c = addi %s#0, %s#1 overflow<no_signed_wrap> : tile<i32>
    return
  }
}
"""


@functools.cache
def composed(path: Path) -> str:
    """What a file is composed to. Not made when tests are collected, for every process collects them all."""
    return text.print_module(sample(path))


@functools.cache
def tokens_of(path: Path) -> list[Token]:
    return tokenize(Source(composed(path), "k"))


def test_every_operation_is_spelled_in_one_place() -> None:
    assert {*FORMATS, *IRREGULAR} == set(OPS)
    assert not set(FORMATS) & set(IRREGULAR)


def test_a_module_with_every_part() -> None:
    module = text.parse(GOOD, filename="k.mlir")
    verify(module, text=GOOD)
    (entry,) = module.entries.values()
    ops = list(entry.body.block.ops)
    assert [op.name for op in ops] == [
        f"cuda_tile.{name}" for name in ("constant", "addf", "make_tensor_view", "get_tensor_shape", "addi", "return")
    ]
    assert location.get(ops[1]) == location.Location("k.mlir", 7, 10)
    assert ops[1].results[0].name_hint == "b"
    assert text.print_module(text.parse(text.print_module(module), filename="again")) == text.print_module(module)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_printed_kernels_parse_to_the_same_text(path: Path) -> None:
    printed = composed(path)
    assert text.print_module(text.parse(printed, filename="again")) == printed


# what to replace in GOOD, by what, where the error points, and what it says
BAD = [
    ("addf %a, %a", "adf %a, %a", "7:10", "there is no operation 'adf'\n"),
    ("%a, %a rounding", "%a, %aa rounding", "7:29", "%aa is not defined here"),
    ("%b = cuda_tile", "%a = cuda_tile", "7:5", "%a is already defined"),
    (
        "flush_to_zero : tile<4xf32>",
        "flush_to_zero : tile<8xf32>",
        "7:63",
        "%a is of type tile<4xf32>, not tile<8xf32>",
    ),
    ("rounding<zero>", "rounding<zro>", "7:41", "'zro' is not a valid rounding mode"),
    ("4x!elem>", "4x!elm>", "3:26", "no type alias !elm"),
    ("tile<4x!elem>", "tile<3x!elem>", "3:8", "powers of two"),
    ("[1.0, 2.5e-1, 0x7F800000, -3]", "[1.0, 2.5e-1, -3]", "6:25", "shape [3], but the type has [4]"),
    ("0x7F800000", "0x7F8000000", "6:39", "32 bits of f32"),
    ("    return\n  }\n}\n", "    return\n", "5:117", "'{' is never closed"),
    ("%c = addi", "%c, %d = addi", "10:5", "has 1 results, 2 are named"),
    ("@m {", "@m $ {", "4:21", "unexpected character '$'"),
    ("%s#1", "%s#2", "10:21", "%s#2 is not defined here"),
    (
        "-> tensor_view<?x8xf32",
        "-> tensor_view<?x16xf32",
        "8:27",
        "shape = [?, 8], but tensor_view<?x16xf32, strides=[?,1]> has [?, 16]",
    ),
]


@pytest.mark.parametrize(("old", "new", "place", "message"), BAD)
def test_an_error_points_at_its_place(old: str, new: str, place: str, message: str) -> None:
    bad = GOOD.replace(old, new, 1)
    with pytest.raises(SourceError) as caught:
        text.parse(bad, filename="k.mlir")
    shown = str(caught.value)
    assert shown.startswith(f"k.mlir:{place}: error: "), shown
    assert message in shown + "\n"
    line, column = map(int, place.split(":"))
    head, source, caret, *_ = shown.splitlines()
    assert source == f"  {bad.splitlines()[line - 1]}" or head.endswith("end of file")
    assert caret.index("^") == column + 1


EMPTY = "entry @k(%n: tile<i32>, %p: tile<ptr<f32>>) {{ {} return }}"
VECTOR = "tensor_view<16xf32, strides=[1]>"
HOSTILE = [
    (
        EMPTY.format(
            "%v = make_tensor_view %p, shape = [1], strides = [1] : tensor_view<1xf32, strides=[-9223372036854775808]>"
        ),
        "strides are positive",
    ),
    (
        EMPTY.format(f"%a = assume div_by<{'9' * 5000}>, %n : tile<i32>"),
        "a number of 5000 digits has more than 64 bits",
    ),
    (EMPTY.format(f"%a = assume bounded<0, {1 << 64}>, %n : tile<i32>"), f"{1 << 64} has more than 64 bits"),
    (f"entry @k(%n: tile<{'9' * 5000}xi32>) {{ return }}", "a number of 5000 digits has more than 64 bits"),
    (f"entry @k(%n: tile<{'ptr<' * 5000}f32{'>' * 5001}) {{ return }}", "types nested deeper than 8"),
    (f"entry @k(%n: {'tile<' * 5000}f32{'>' * 5000}) {{ return }}", "types nested deeper than 8"),
    ("!a = ptr<f32>\n!b = ptr<!a>\nentry @k() { return }", "a pointer cannot point to ptr<f32>"),
    ("!a = " + "(" * 5000, "expected a type, found '('"),
    (EMPTY.format("%a:0 = addi %n, %n : tile<i32>"), "%a cannot name 0 results"),
    (EMPTY.format("%a:-1, %b:2 = addi %n, %n : tile<i32>"), "%a cannot name -1 results"),
    (
        EMPTY.format(
            f"%v = make_tensor_view %p, shape = [16], strides = [1] : {VECTOR}\n"
            f"%a:4000000000 = get_tensor_shape %v : {VECTOR} -> tile<i32>"
        ),
        "%a cannot name 4000000000 results",
    ),
    ("entry @k() { %a = constant <i32: \u0663> : tile<i32> return }", "unexpected character '\u0663'"),
    (EMPTY.format('%t = print_tko "\\+f" -> token'), "unknown escape \\+"),
    (EMPTY.format('%t = print_tko "\\4" -> token'), "unknown escape \\4"),
    (
        EMPTY.format(
            "%z = iota : tile<2xi32>\n"
            "%a = reduce %z dim=0 identities=[0 : i32] : tile<2xi32> -> tile<i32> (%x: tile<i32>, %y: tile<i32>) {}"
        ),
        "a body must end with a terminator",
    ),
    ("#a = #b\n#b = #a\nentry @k() { return }", "attribute alias #b stands for itself"),
    ("#a = unit\n#a = unit\nentry @k() { return }", "alias #a is defined twice"),
    ("#a = " + "[" * 5000, "attributes nested deeper than 64"),
    (
        "#0 = loc(unknown)\n"
        + "".join(f"#{n + 1} = loc(callsite(#{n} at #{n}))\n" for n in range(40))
        + "entry @k() { return loc(#40) }",
        "stands for more than 10000 attributes",
    ),
    ("#a = #cuda_tile.div<3>\nentry @k() { return }", "no attribute #cuda_tile.div"),
    (EMPTY.format("%a = assume #a, %n : tile<i32>"), "no attribute alias #a"),
    (EMPTY.format("%a = addi %n, %n : tile<i32> loc(3)"), "'3' does not begin a location"),
    (EMPTY.format("%a = addi %n, %n : tile<i32> loc(#cuda_tile.rounding<zero>)"), "expected a location"),
    ('#a = #cuda_tile.di_compile_unit<file = "a">\nentry @k() { return }', "expected a di_file"),
    ("#a = #cuda_tile.di_compile_unit<line = 3>\nentry @k() { return }", "does not have the fields line"),
    ("#a = #cuda_tile.di_compile_unit<lines = 3>\nentry @k() { return }", "di_compile_unit has no field lines"),
    (EMPTY.format('%a = "cuda_tile.addi"(%n) : (tile<f32>) -> tile<i32>'), "%n is of type tile<i32>, not tile<f32>"),
    (EMPTY.format('%a = "cuda_tile.addi"(%n) : () -> tile<i32>'), "1 operands, but 0 operand types"),
    (EMPTY.format('"cuda_tile.addg"() : () -> ()'), "no operation 'addg'"),
    (EMPTY.format('%a = "cuda_tile.absi"(%n) {way = 1} : (tile<i32>) -> tile<i32>'), "has no property 'way'"),
    (
        EMPTY.format('%a = "cuda_tile.negi"(%n) {overflow = 9 : i32} : (tile<i32>) -> tile<i32>'),
        "overflow = 9 is not from 0 to 3",
    ),
    (EMPTY.format('%a = "cuda_tile.iota"() ({}) : () -> tile<2xi32>'), "has 0 regions, 1 are given"),
    (EMPTY.format('%a = "cuda_tile.get_global"() : () -> tile<ptr<i32>>'), "lacks its global_name"),
    (
        EMPTY.format(
            '%a:2 = "cuda_tile.load_ptr_tko"(%p) {memory_ordering_semantics = 0} : (tile<ptr<f32>>) -> '
            "(tile<f32>, token)"
        ),
        "needs operandSegmentSizes",
    ),
    (EMPTY.format('"cuda_tile.loop"() ({^a: "cuda_tile.break"() : () -> () ^b:}) : () -> ()'), "has one block"),
    ('"cuda_tile.entry"() <{sym_name = "k"}> ({}) : () -> ()', "lacks its function_type"),
    ("module { entry @k() {} cuda_tile.module @m {} }", "entries stand beside a module"),
    ("cuda_tile.module @a {}\ncuda_tile.module @b {}", "the file has 2 modules; here one is expected"),
    ("cuda_tile.module @a attributes {producer = 3} {}", "the producer must be a string"),
]


@pytest.mark.parametrize(("hostile", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_an_error_at_its_place(hostile: str, message: str) -> None:
    with pytest.raises(SourceError, match=r"^k:\d+:\d+: error: ") as caught:
        text.parse(hostile, filename="k")
    assert message in str(caught.value).splitlines()[0]


def test_only_a_newline_ends_a_line() -> None:
    with pytest.raises(SourceError) as caught:
        text.parse("// a form feed \x0c, a line separator \u2028\r\nadf\r\n", filename="k")
    assert str(caught.value).splitlines() == ["k:2:1: error: expected 'entry' or 'global', found 'adf'", "  adf", "  ^"]


def test_names_that_are_no_words_are_quoted() -> None:
    source = (
        'cuda_tile.module @"a module" {\n'
        '  global @"\\C3\\A9" <f32: 1.000000e+00> : tile<2xf32>\n'
        '  entry @"1 \\22-\\0A"() optimization_hints=<"sm 90" = {"a key" = 2}> {\n'
        '    %0 = get_global @"\\C3\\A9" : tile<ptr<f32>>\n'
        "    return\n  }\n}\n"
    )
    module = text.parse(source, filename="k")
    assert [*module.entries] == ['1 "-\n'] and text.print_module(module) == source


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(SourceError, match="did you mean 'addf'"):
        text.parse(GOOD.replace("addf", "addff"), filename="k.mlir")
    with pytest.raises(SourceError, match="did you mean %a"):
        text.parse(GOOD.replace("addf %a,", "addf %aq,"), filename="k.mlir")


def test_only_an_access_through_a_view_has_inbounds() -> None:
    line = "%x, %t = load_ptr_tko weak %p inbounds = [true] : tile<ptr<f32>> -> tile<f32>, token"
    with pytest.raises(SourceError, match=r"^k:2:32: error: expected ':', found 'inbounds'"):
        text.parse(f"entry @k(%p: tile<ptr<f32>>) {{\n {line}\nreturn\n}}\n", filename="k")


def test_two_entries_of_one_name() -> None:
    twice = "entry @k() {\n return\n}\nentry @k() {\n return\n}\n"
    with pytest.raises(SourceError, match=r"^k:4:1: error: @k is defined twice"):
        text.parse(twice, filename="k")


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    deep = "entry @k(%c: tile<i1>) {\n" + "if %c {\n" * 500 + "}\n" * 500 + "return\n}\n"
    with pytest.raises(SourceError, match="nested deeper"):
        text.parse(deep, filename="k")


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_kernels_raise_source_errors_only(data: st.DataObject) -> None:
    tokens = list(tokens_of(data.draw(st.sampled_from(KERNELS))))
    for _ in range(data.draw(st.integers(1, 3))):
        a, b = (data.draw(st.integers(0, len(tokens) - 2)) for _ in range(2))
        match data.draw(st.sampled_from(["drop", "double", "swap"])):
            case "drop":
                del tokens[a]
            case "double":
                tokens.insert(a, tokens[b])
            case _:
                tokens[a], tokens[b] = tokens[b], tokens[a]
    damaged = "".join(t.text if t.kind == "shape" else f"{t.text} " for t in tokens[:-1])
    try:
        verify(text.parse(damaged, filename="k"), text=damaged)
    except SourceError as error:
        damage = str(error)
    else:
        damage = "k: none that shows"
    assert damage.startswith("k:")


def test_hints_that_say_nothing_are_none() -> None:
    module = text.parse("entry @k() optimization_hints=<> { return }", filename="k.mlir")
    assert module.entries["k"].optimization_hints is None
