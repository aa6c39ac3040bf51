"""Writing and reading bytecode: nothing is lost, and any damage raises a BytecodeError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute

from toolchain.errors import BytecodeError, SourceError, UsageError
from toolchain.tileir import bytecode, text
from toolchain.tileir.bytecode import codec
from toolchain.tileir.bytecode.attributes import AttributeReader
from toolchain.tileir.bytecode.encoding import Reader
from toolchain.tileir.dialect import attrs, ops, types, verify
from toolchain.tileir.interpreter.analysis.fields import constant_array

SOURCE = (Path(__file__).parent / "operations.mlir").read_text()
PROGRAM = SOURCE[SOURCE.index("cuda_tile.module") :]
MODULE = text.parse(SOURCE, filename="operations.mlir")
CODE = bytecode.write(MODULE)
LATER_SOURCE = (Path(__file__).parent / "operations_13_4.mlir").read_text()
LATER = text.parse(LATER_SOURCE, filename="operations_13_4.mlir")
LATER_CODE = bytecode.write(LATER, "13.4")
LATEST_SOURCE = (Path(__file__).parent / "operations_13_5.mlir").read_text()
LATEST = text.parse(LATEST_SOURCE, filename="operations_13_5.mlir")
LATEST_CODE = bytecode.write(LATEST, "13.5")
VIEW = "partition_view<tile=(8), padding_value = nan, tensor_view<?xf32, strides=[1]>>"
OLD = f"""
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {{
  %v = make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>
  %w = make_partition_view %v : {VIEW}
  %x, %t = load_view_tko weak %w[%n] : {VIEW}, tile<i32> -> tile<8xf32>, token
  %y = exp %x : tile<8xf32>
  %z = tanh %y : tile<8xf32>
  %m = negi %n : tile<i32>
  print_tko "%d and %f", %m, %z : tile<i32>, tile<8xf32> -> token
  %sum = addi %m, %n : tile<i32>
  for %i in (%n to %m, step %n) : tile<i32> {{
    continue
  }}
  return
}}
"""


def test_sample_has_every_operation_and_is_right() -> None:
    found = {op.name.removeprefix("cuda_tile.") for module in (MODULE, LATER, LATEST) for op in module.walk()}
    assert not set(ops.OPS) - found
    verify(MODULE, text=SOURCE)
    verify(LATER, text=LATER_SOURCE)
    verify(LATEST, text=LATEST_SOURCE)


def test_read_gives_back_what_was_written() -> None:
    again = bytecode.read(CODE)
    assert text.print_module(again) == PROGRAM
    assert bytecode.write(again) == CODE
    assert bytecode.version_of(CODE) == (13, 3)


def test_read_gives_back_what_was_written_of_13_4() -> None:
    again = bytecode.read(LATER_CODE)
    assert text.print_module(again) == LATER_SOURCE[LATER_SOURCE.index("cuda_tile.module") :]
    assert bytecode.write(again, "13.4") == LATER_CODE
    assert bytecode.write(again, "13.4", debug_info=True) == LATER_CODE
    assert bytecode.version_of(LATER_CODE) == (13, 4)


def test_read_gives_back_what_was_written_of_13_5() -> None:
    again = bytecode.read(LATEST_CODE)
    assert text.print_module(again) == LATEST_SOURCE[LATEST_SOURCE.index("cuda_tile.module") :]
    assert bytecode.write(again, "13.5") == LATEST_CODE
    assert bytecode.write(again, "13.5", debug_info=True) == LATEST_CODE
    assert bytecode.version_of(LATEST_CODE) == (13, 5)


@pytest.mark.parametrize("version", ["13.4", "13.5"])
def test_the_same_program_in_a_newer_version(version: str) -> None:
    again = bytecode.read(bytecode.write(MODULE, version))
    assert text.print_module(again) == PROGRAM
    assert bytecode.write(again) == CODE


def test_there_and_back_through_the_newest_version() -> None:
    again = bytecode.read(bytecode.write(bytecode.read(LATER_CODE), "13.5"))
    assert text.print_module(again) == LATER_SOURCE[LATER_SOURCE.index("cuda_tile.module") :]
    assert bytecode.write(again, "13.4") == LATER_CODE


UNICAST = """
entry @k(%p: tile<ptr<f32, <unicast>>>) {
  %i = constant <i32: 1> : tile<i32>
  %q = offset %p, %i : tile<ptr<f32, <unicast>>>, tile<i32> -> tile<ptr<f32, <unicast>>>
  return
}
"""
INBOUNDS = "view_tko relaxed device %w[%n], addf, %x token = %t inbounds = [true]"
REDUCES = OLD.replace(
    "  %y = exp", f"  %r = atomic_red_{INBOUNDS} : tile<8xf32>, {VIEW}, tile<i32> -> token\n  %y = exp"
)


@pytest.mark.parametrize(
    ("source", "version", "message"),
    [
        (REDUCES, "13.4", r"6:8: cuda_tile\.atomic_red_view_tko: bytecode 13\.4 has no inbounds"),
        (LATEST_SOURCE, "13.4", r"3:3: cuda_tile\.entry: bytecode 13\.4 has no attributes of parameters"),
        (UNICAST, "13.4", r"2:1: cuda_tile\.entry: bytecode 13\.4 has no type ptr<f32, <unicast>>"),
        (UNICAST.replace("unicast", "none"), "13.3", r"cuda_tile\.entry: bytecode 13\.3 has no type ptr<f32, <none>>"),
        (
            "entry @k(%n: tile<i32> {nv.align = 4 : i32}) {\nreturn\n}",
            "13.4",
            r"1:1: cuda_tile\.entry: bytecode 13\.4 has no attributes of parameters",
        ),
        (LATER_SOURCE, "13.3", r"cuda_tile\.gdc_wait_tko: bytecode 13\.3 has no such operation"),
        (
            "entry @k() {\n%0 = constant <i4: 1> : tile<2xi4>\nreturn\n}",
            "13.2",
            r"2:6: cuda_tile\.constant: bytecode 13\.2 has no type i4",
        ),
    ],
)
def test_what_has_no_older_form_is_named(source: str, version: str, message: str) -> None:
    with pytest.raises(BytecodeError, match=message):
        bytecode.write(text.parse(source, filename="new.mlir"), version)


def test_hints_are_always_written_since_13_5() -> None:
    entry = "entry @k() optimization_hints=<sm_90 = {num_worker_warps_per_cta = 16}> {\nreturn\n}"
    for source in (entry, "entry @k() {\nreturn\n}"):
        module = text.parse(source, filename="k")
        for version in ("13.4", "13.5"):
            again = bytecode.read(bytecode.write(module, version))
            assert text.print_module(again) == text.print_module(module)


def test_what_is_said_of_parameters_must_fit_them() -> None:
    source = "entry @k(%n: tile<i32> {nv.align = 4 : i32}, %m: tile<i32>) {\nreturn\n}"
    code = bytecode.write(text.parse(source, filename="k"), "13.5")
    entry = bytecode.read(code).entries["k"]
    assert entry.arg_attrs is not None and len(entry.arg_attrs.data) == 2
    at = code.index(b"\x0b\x00\x06\x02") + 3  # no hints, an array of two
    with pytest.raises(BytecodeError, match="k: 1 dictionaries for 2 parameters"):
        bytecode.read(code[:at] + b"\x01" + code[at + 1 :])
    with pytest.raises(BytecodeError, match="k: the attributes of its parameters are not an array of dictionaries"):
        bytecode.read(code[: at - 1] + b"\x03" + code[at:])


def test_inbounds_that_are_all_false_are_none() -> None:
    def spelled(inbounds: str) -> ops.ModuleOp:
        return text.parse(LATER_SOURCE.replace(" inbounds = [false, true]", inbounds), filename="new.mlir")

    said, unsaid = spelled(" inbounds = [false, false]"), spelled("")
    assert text.print_module(said) == text.print_module(unsaid)
    assert bytecode.write(said, "13.4") == bytecode.write(unsaid, "13.4") != LATER_CODE
    for module in (said, bytecode.read(bytecode.write(said, "13.4"))):
        loads = [op for op in module.walk() if isinstance(op, ops.LoadViewTkoOp)]
        assert [op.inbounds for op in loads] == [attrs.BoolsAttr((True, False)), None, None]


def test_inbounds_that_were_made_all_false_are_none() -> None:
    module, plain = (text.parse(OLD, filename="old.mlir") for _ in range(2))
    op = next(op for op in module.walk() if isinstance(op, ops.LoadViewTkoOp))
    op.inbounds = attrs.BoolsAttr((False,))
    assert text.print_module(module) == text.print_module(plain)
    assert bytecode.write(module, "13.1") == bytecode.write(plain, "13.1")
    assert bytecode.write(module, "13.4") == bytecode.write(plain, "13.4")


def test_a_wrong_number_of_inbounds_is_damage() -> None:
    module = text.parse(LATER_SOURCE, filename="new.mlir")
    op = next(op for op in module.walk() if isinstance(op, ops.LoadViewTkoOp))
    op.inbounds = attrs.BoolsAttr((True,))
    with pytest.raises(SourceError, match=r"load_view_tko: there are 2 indices, but 1 inbounds"):
        verify(module)
    with pytest.raises(BytecodeError, match=r"byte 0x\w+: .*load_view_tko: 1 inbounds for 2 of index"):
        bytecode.read(bytecode.write(module, "13.4"))


@pytest.mark.parametrize("item", [b"\x0c\x01\x00", b"\x0e\x01\x00\x00\x00"])
def test_a_ptr_attr_is_of_a_version(item: bytes) -> None:
    for version, names in (((13, 4), types.PTR_ATTRS[:1]), ((13, 5), types.PTR_ATTRS)):
        for number, name in enumerate(types.PTR_ATTRS):
            reader = Reader(item + bytes([number]))
            if name in names:
                kind = codec.read_type(reader, [types.f32], version)
                assert isinstance(kind, types.PtrType | types.TensorViewType) and kind.ptr_attr == name
                assert codec.write_type(kind, lambda _: 0, version) == reader.data
            else:
                with pytest.raises(BytecodeError, match=f"{number} is not a valid ptr_attr"):
                    codec.read_type(reader, [types.f32], version)
    with pytest.raises(BytecodeError, match="unknown flags 0x2"):
        codec.read_type(Reader(item[:1] + b"\x02" + item[2:]), [types.f32], (13, 5))


@pytest.mark.parametrize(
    ("item", "known", "message"),
    [
        (b"\x0c\x00", [types.PtrType(types.f32)], "a pointer cannot point to ptr<f32>"),
        (b"\x0c\x00", [types.i4], "a pointer cannot point to i4"),
        (
            b"\x10\x01\x00\x00",
            [FunctionType.from_lists([], [])],
            "a function type as a parameter or result of a function type",
        ),
    ],
)
def test_types_do_not_nest_without_end(item: bytes, known: list[Attribute], message: str) -> None:
    with pytest.raises(BytecodeError, match=message):
        codec.read_type(Reader(item), known, (13, 3))


def test_flags_that_mean_nothing_are_damage() -> None:
    reader = AttributeReader(lambda _: types.i32, lambda _: "")
    assert reader.predicate(Reader(b"\x0c\x03\x01\x02")) == attrs.BoundedAttr(-1, 1)
    for data in (b"\x0c\x07\x01\x02", b"\x08\x10\x04"):
        with pytest.raises(BytecodeError, match="unknown flags"):
            reader.predicate(Reader(data))


def test_a_part_of_the_debug_section_that_there_is_not() -> None:
    source = "entry @k() {\nreturn\n}\n"
    code = bytecode.write(text.parse(source, filename="k"))
    at = code.index(b"\x02\x01\x03\x5c")  # flags, the part, the length of the code, return
    with pytest.raises(BytecodeError, match="k: part 2 of 1 of the debug section"):
        bytecode.read(code[: at + 1] + b"\x02" + code[at + 2 :])


def test_few_bits_are_read_back_from_text() -> None:
    line = "%0 = constant <i1: [true, false, true, true]> : tile<4xi1>"
    code = bytecode.write(text.parse(f"entry @k() {{\n{line}\nreturn\n}}\n", filename="k"))
    printed = text.print_module(bytecode.read(code))
    assert line in printed and bytecode.write(text.parse(printed, filename="again")) == code


@pytest.mark.parametrize(("byte", "value"), [(0x01, "true"), (0x7F, "true"), (0xFE, "false"), (0x00, "false")])
def test_one_byte_for_many_bits_is_its_lowest_one(byte: int, value: str) -> None:
    module = text.parse("entry @k() {\n%0 = constant <i1: true> : tile<16xi1>\nreturn\n}\n", filename="k")
    op = next(op for op in module.walk() if isinstance(op, ops.ConstantOp))
    op.value = attrs.DenseAttr(bytes([byte]), op.value.type)
    again = bytecode.read(bytecode.write(module))  # as tileirdisasm reads it
    assert f"constant <i1: {value}> : tile<16xi1>" in text.print_module(again)
    constant = next(op for op in again.walk() if isinstance(op, ops.ConstantOp))
    assert constant_array(constant).tolist() == [value == "true"]


def test_globals_alone_have_an_empty_debug_section() -> None:
    code = bytecode.write(text.parse("global @g <i32: 1> : tile<4xi32>", filename="k"))
    assert bytecode.read(code).entries == {}


def test_a_name_of_a_file_that_is_not_utf_8_is_written_with_question_marks() -> None:
    module = text.parse("entry @k() {\n  return\n}\n", filename="a\udcff.mlir")
    assert b"a?.mlir" in bytecode.write(module, debug_info=True)


def test_constants_have_no_bits_beyond_their_type() -> None:
    for name, number, raw in (("tf32", "1.0", b"\x00\xfc\x08"), ("f4E2M1FN", "1.0", b"\x12")):
        source = f"entry @k() {{\n%0 = constant <{name}: {number}> : tile<2x{name}>\nreturn\n}}\n"
        module = text.parse(source, filename="k")
        op = next(op for op in module.walk() if isinstance(op, ops.ConstantOp))
        op.value = attrs.DenseAttr(raw, op.value.type)
        with pytest.raises(BytecodeError, match=rf"{len(raw)} bytes cannot be a constant of type tile<2x{name}>"):
            bytecode.read(bytecode.write(module))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (CODE + b"\x00", "1 bytes after the last section"),
        (CODE[:10] + b"\x01" + CODE[11:], r"version 13\.3 with the tag 0100 is a preview of that version"),
    ],
)
def test_a_file_is_read_whole(damaged: bytes, message: str) -> None:
    with pytest.raises(BytecodeError, match=message):
        bytecode.read(damaged)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = alloca num_elem = -1, alignment = 4 : tile<ptr<f32>>", "-1 cannot be written: a varint"),
        (f"%a = assume bounded<?, {(1 << 64) - 1}>, %n : tile<i32>", "cannot be written: a varint"),
        ("%a = permute %n [4294967296] : tile<i32> -> tile<i32>", r"\[4294967296\] cannot be written in 32 bits each"),
    ],
)
def test_numbers_out_of_range_are_not_written(line: str, message: str) -> None:
    module = text.parse(f"entry @k(%n: tile<i32>) {{\n{line}\nreturn\n}}\n", filename="k")
    with pytest.raises(BytecodeError, match=message):
        bytecode.write(module)


def test_writing_is_deterministic_and_names_no_place() -> None:
    elsewhere = text.parse(SOURCE, filename="/some/other/folder/operations.mlir")
    assert bytecode.write(elsewhere) == CODE
    assert b"operations" not in CODE and b"folder" not in CODE
    assert bytecode.strip_debug(CODE) == CODE


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3", "13.4"])
def test_older_versions(version: str) -> None:
    module = text.parse(OLD, filename="old.mlir")
    code = bytecode.write(module, version)
    assert bytecode.version_of(code) == tuple(map(int, version.split(".")))
    again = bytecode.read(code)
    assert text.print_module(again) == text.print_module(bytecode.read(bytecode.write(module)))
    assert bytecode.write(again, version) == code
    assert bytecode.write(again, "13.3") == bytecode.write(module, "13.3")


@pytest.mark.parametrize(
    ("line", "version", "missing"),
    [
        ("%a = atan2 %x, %x : tile<f32>", "13.1", "atan2"),
        ("%a = exp %x rounding<approx> : tile<f32>", "13.2", "exp"),
        ("%a = tanh %x rounding<approx> : tile<f32>", "13.1", "tanh"),
        ("%a = negi %n overflow<no_signed_wrap> : tile<i32>", "13.1", "negi"),
        ('%a = print_tko "" -> token\n%b = print_tko "" token = %a -> token', "13.1", "print_tko: .* no result_token"),
        ('%t = make_token : token\nprint_tko "" token = %t -> token', "13.1", "print_tko: .* no token"),
        ("for unsigned %i in (%n to %n, step %n) : tile<i32> { continue }", "13.1", "for"),
        ("%a = gdc_wait_tko -> token", "13.3", "new.mlir:2:6: cuda_tile.gdc_wait_tko: .* no such operation"),
        ("%a = ftoi %x signed saturating : tile<f32> -> tile<i32>", "13.3", "ftoi: .* no saturating"),
        ("%a = insert %x, %x[] : tile<f32>, tile<f32>", "13.3", "insert: .* no such operation"),
        ("%a = fpowi %x, %n : tile<f32>, tile<i32>", "13.3", "fpowi: .* no such operation"),
        ("%a = ftof %x rounding<nearest_away> : tile<f32> -> tile<tf32>", "13.3", "ftof: .* no nearest_away"),
        ("%t = make_token : token\n%a = memory_fence_alias_tko %t", "13.3", "fence_alias_tko: .* no such operation"),
        ("%a = constant <fnv8E5M3FNU: 1.0> : tile<fnv8E5M3FNU>", "13.3", r"13\.3 has no type .*fnv8E5M3FNU"),
    ],
)  # fmt: skip
def test_what_an_older_version_lacks_is_named(line: str, version: str, missing: str) -> None:
    head = "entry @k(%x: tile<f32>, %n: tile<i32>) {\n"
    module = text.parse(f"{head}{line}\nreturn }}", filename="new.mlir")
    bytecode.write(module, "13.4")
    with pytest.raises(BytecodeError, match=missing):
        bytecode.write(module, version)


@pytest.mark.parametrize("name", ["load_view_tko", "store_view_tko"])
def test_inbounds_are_new_in_13_4(name: str) -> None:
    store = f"  %s = store_view_tko weak %x, %w[%n] : tile<8xf32>, {VIEW}, tile<i32> -> token\n"
    lines = OLD.replace("  %y =", f"{store}  %y =").splitlines()
    at = next(n for n, line in enumerate(lines) if name in line)
    lines[at] = lines[at].replace("%w[%n]", "%w[%n] inbounds = [true]")
    module = text.parse("\n".join(lines), filename="new.mlir")
    bytecode.write(module, "13.4")
    with pytest.raises(BytecodeError, match=rf"new\.mlir:{at + 1}:\d+: .*{name}: bytecode 13\.3 has no inbounds"):
        bytecode.write(module, "13.3")


def test_unknown_versions() -> None:
    with pytest.raises(UsageError, match=r"13\.9"):
        bytecode.write(MODULE, "13.9")
    later = CODE[:8] + bytes((14, 0)) + CODE[10:]
    with pytest.raises(BytecodeError, match=r"bytecode version 14\.0"):
        bytecode.read(later, name="k.tilebc")


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(60), CODE[:7], CODE[:9]])
def test_what_is_no_bytecode(data: bytes) -> None:
    with pytest.raises(BytecodeError, match=r"k\.tilebc"):
        bytecode.read(data, name="k.tilebc")


def reads_or_refuses(data: bytes) -> None:
    """Read damaged data: it either raises BytecodeError, or gives a module that can be written."""
    try:
        module = bytecode.read(data)
    except BytecodeError:
        return
    bytecode.write(module)


@settings(max_examples=300, derandomize=True)
@given(st.integers(0, len(CODE) - 1), st.integers(1, 255))
def test_a_changed_byte(at: int, change: int) -> None:
    damaged = bytearray(CODE)
    damaged[at] ^= change
    reads_or_refuses(bytes(damaged))


@settings(max_examples=100, derandomize=True)
@given(st.integers(0, len(CODE) - 1))
def test_truncation(length: int) -> None:
    with pytest.raises(BytecodeError, match="byte 0x"):
        bytecode.read(CODE[:length])


@settings(max_examples=100, derandomize=True)
@given(st.integers(0, len(CODE) - 1), st.binary(min_size=1, max_size=9))
def test_inserted_bytes(at: int, more: bytes) -> None:
    reads_or_refuses(CODE[:at] + more + CODE[at:])
