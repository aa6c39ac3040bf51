"""assemble, disassemble, verify and interpret, without the toolchain's tools."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolchain.contract.targets import BYTECODE
from toolchain.knobs import ROOT
from toolchain.tileir import bytecode, text
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.dialect.memory import MakeTensorViewOp
from toolchain.tileir.dialect.types import DYNAMIC, TensorViewType, f32

from ..conftest import Run

GELU = ROOT / "kernels_mlir" / "gelu.mlir"


def test_text_to_bytecode_to_text(run: Run, add_one: Path, tmp_path: Path) -> None:
    binary, again, twice = tmp_path / "k.tilebc", tmp_path / "k.mlir", tmp_path / "k2.tilebc"
    assert run("assemble", add_one, "-o", binary) == (0, "", "")
    assert bytecode.version_of(binary.read_bytes()) == parse_version(BYTECODE)
    assert run("disassemble", binary, "-o", again).code == 0
    assert run("assemble", again, "-o", twice).code == 0
    assert binary.read_bytes() == twice.read_bytes()
    assert run("disassemble", binary).out == again.read_text()
    assert "addf" in again.read_text()


def test_bytecode_that_is_not_right_has_no_text(run: Run, tmp_path: Path) -> None:
    parameters = "%p: tile<ptr<f32>>, %n: tile<i32>"
    view = "make_tensor_view %p, shape = [%n], strides = [1] : tile<i32> -> tensor_view<?xf32, strides=[1]>"
    module = text.parse(f"entry @k({parameters}) {{\n%v = {view}\nreturn\n}}\n", filename="k")
    made = next(op for op in module.walk() if isinstance(op, MakeTensorViewOp))
    made.result._type = TensorViewType((DYNAMIC, DYNAMIC), (4, 1), f32)  # pyright: ignore[reportPrivateUsage]
    path = tmp_path / "k.tilebc"
    path.write_bytes(bytecode.write(module))
    for command in ("disassemble", "verify"):
        ran = run(command, path)
        assert ran.code == 3 and ran.out == ""
        assert ran.err.startswith(f"error: {path}:0:0: error: make_tensor_view: ") and "(in @k)" in ran.err


@pytest.mark.parametrize("size", [1, 7, 8])
def test_bytecode_cut_off_in_its_header_is_no_text(size: int, run: Run, add_one: Path, tmp_path: Path) -> None:
    path = tmp_path / "k.tilebc"
    run("assemble", add_one, "-o", path)
    path.write_bytes(path.read_bytes()[:size])
    ran = run("verify", path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"error: {path}: Tile IR bytecode that ends inside its header, after {size} bytes\n"


def test_an_entry_of_a_source_is_assembled(run: Run, tmp_path: Path) -> None:
    assert run("assemble", "--entry", "gelu_1024_f16", "--bytecode", "13.2", "-o", tmp_path / "k").code == 0
    data = (tmp_path / "k").read_bytes()
    assert bytecode.version_of(data) == (13, 2)
    assert list(bytecode.read(data).entries) == ["gelu_1024_f16"]


def test_verify_names_the_entries(run: Run, add_one: Path, tmp_path: Path) -> None:
    run("assemble", add_one, "-o", tmp_path / "k.tilebc")
    ran = run("verify", add_one, tmp_path / "k.tilebc", GELU)
    listed = f"{add_one}: ok: @add_one\n{tmp_path / 'k.tilebc'}: ok: @add_one\n{GELU}: ok: @gelu\n"
    assert ran == (0, listed, "3 files, no error\n")


def test_verify_goes_on_past_what_is_wrong(run: Run, add_one: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(
        add_one.read_text().replace("%new = addf %old", "%new = addf %none").replace("= store", "= x_store")
    )
    ran = run("verify", wrong, tmp_path / "missing", add_one)
    assert ran.code == 3 and ran.out == f"{add_one}: ok: @add_one\n"
    assert [line for line in ran.err.splitlines() if not line.startswith(" ")] == [
        f"error: {wrong}:6:17: error: %none is not defined here",
        f"error: {wrong}:7:11: error: there is no operation 'x_store_ptr_tko'",
        f"error: {tmp_path / 'missing'} cannot be read: No such file or directory",
        "3 files, 3 errors in 2 of them",
    ]
    assert run("verify", tmp_path / "missing", add_one).code == 2
    assert run("verify", wrong).err.endswith("\n2 errors\n")


def test_verify_prints_json(run: Run, add_one: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("entry @k() { x }")
    ran = run("verify", wrong, add_one, "--json")
    assert (ran.code, ran.err) == (3, "")
    assert json.loads(ran.out) == {
        "wrong": 1,
        "files": [
            {"file": str(wrong), "entries": [], "errors": [
                {"kind": "SourceError", "file": str(wrong), "line": 1, "column": 14,
                 "message": "there is no operation 'x'", "hint": None},
            ]},
            {"file": str(add_one), "entries": ["add_one"], "errors": []},
        ],
    }  # fmt: skip
    assert run("verify", add_one, "--json").code == 0


def test_a_wrong_part_of_several_kernels_is_told_once(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.mlir").write_text(
            'include "c.mlir"\nkernel @k' + name + " op = gelu { call @f() return }\n"
        )
    (tmp_path / "c.mlir").write_text("fragment @f() { x }\n")
    ran = run("verify", tmp_path / "a.mlir", tmp_path / "b.mlir", tmp_path / "c.mlir")
    assert ran.code == 3 and ran.err.count("there is no operation 'x'") == 1
    assert ran.err.endswith("3 files, 1 error in 3 of them\n")


def test_verify_reads_standard_input(run: Run, add_one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, wanted in ((add_one, (0, "<stdin>: ok: @add_one\n", "")), (GELU, None)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        ran = run("verify", "-")
        assert ran == wanted if wanted else ran.code == 2 and "name the file" in ran.err


def test_verify_points_at_what_is_wrong(run: Run, add_one: Path) -> None:
    bad = "    %w = addf %zero, %zero : tile<i32>\n"  # it parses, but there is no addf of integers
    add_one.write_text(add_one.read_text().replace("    %new", f"{bad}    %new"))
    ran = run("verify", add_one)
    assert ran.code == 3 and ran.out == ""
    assert ran.err.startswith(f"error: {add_one}:6:")
    line, caret = ran.err.splitlines()[1:3]
    assert line.strip() == bad.strip() and caret.strip() == "^"


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", 3, "1:1"),
        (b"\xff\xfe\x00", 2, "neither Tile IR text nor bytecode"),
        (b"\x7fTileIR\x00\x0d\x03", 3, "byte 0x"),
        (b"cuda_tile.module @m {\n", 3, ":2:1"),
        (b"// nothing\n", 3, "no entry in this file"),
    ],
)
def test_files_that_are_no_kernel(run: Run, tmp_path: Path, content: bytes, code: int, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for words in (["verify", path], ["assemble", path, "-o", tmp_path / "out"], ["interpret", path]):
        ran = run(*words)
        assert ran.code == code and ran.err.startswith("error: ") and str(path) in ran.err and said in ran.err
    assert not (tmp_path / "out").exists()
    assert run("disassemble", path).code == 3


def test_a_file_beside_a_kernel_that_is_no_text(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gelu.mlir").write_text("fragment @f() { yield }\n")
    (tmp_path / "other.mlir").write_bytes(b"// a comment\nab\xa8")
    ran = run("verify", tmp_path / "gelu.mlir")
    said = rf"error: {tmp_path.name}/other\.mlir:2:3: error: it is not UTF-8 text: .*\n  next: "
    assert ran.code == 3 and re.match(said, ran.err)
    (tmp_path / "other.mlir").unlink()
    (tmp_path / "other.mlir").mkdir()
    ran = run("verify", tmp_path / "gelu.mlir")
    assert ran.code == 3 and "other.mlir:1:1: error: it cannot be read: Is a directory" in ran.err


def test_output_that_cannot_be_written() -> None:
    for output in ("-o /dev/full", "> /dev/full"):
        command = f"exec {sys.executable} -m tilestack assemble {GELU} {output}"
        done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("command", ["verify", "assemble", "disassemble", "interpret"])
def test_files_that_cannot_be_read(run: Run, tmp_path: Path, command: str) -> None:
    for path in (tmp_path / "missing", tmp_path):
        ran = run(command, path)
        assert ran.code == 2 and f"{path} cannot be read" in ran.err


def test_assemble_wants_one_input_and_a_known_version(run: Run, add_one: Path, tmp_path: Path) -> None:
    assert run("assemble").code == 2
    assert run("assemble", add_one, "--entry", "gelu_1024_f16").code == 2
    assert "no entry 'gelu'" in run("assemble", "--entry", "gelu").err
    for version in ("12.0", "x"):
        assert "one of 13.1" in run("assemble", add_one, "--bytecode", version).err
    assert "no target sm_1\n" in run("assemble", add_one, "--target", "sm_1").err
    assert "one target" in run("assemble", add_one, "--target", "all").err
    ran = run("assemble", add_one, "-o", tmp_path / "no" / "folder")
    assert ran.code == 2 and "cannot be written: No such file or directory" in ran.err


def test_interpret_runs_and_saves(run: Run, add_one: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([41, 7], np.float32))
    out = tmp_path / "out.npy"
    ran = run(
        "interpret", add_one, "--pointers", "--arg", tmp_path / "x.npy", "--arg", "2", "--save", f"0={out}", "--json"
    )
    assert ran.code == 0 and ran.err == ""
    assert np.load(out).tolist() == [42, 7]
    shown = json.loads(ran.out)
    assert (shown["entry"], shown["grid"]) == ("add_one", [1, 1, 1])
    assert shown["arguments"] == [
        {"name": "x", "kind": "array", "dtype": "f32", "shape": [2], "first": [42, 7], "sum": 49},
        {"name": "n", "kind": "number", "value": 2},
    ]


def test_json_is_json_whatever_a_kernel_prints_and_leaves(run: Run, add_one: Path, tmp_path: Path) -> None:
    printing = '    %t2 = print_tko "x is %f", %new : tile<f32> -> token\n    return'
    add_one.write_text(add_one.read_text().replace("    return", printing))
    np.save(tmp_path / "x.npy", np.array([np.inf, 7], np.float32))
    words = ["interpret", add_one, "--arg", tmp_path / "x.npy", "--pointers", "--arg", "2"]
    plain, shown = run(*words), run(*words, "--json")
    assert plain.code == shown.code == 0, plain.err
    assert plain.out.startswith("x is inf") and shown.err.startswith("x is inf")

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    row, _ = json.loads(shown.out, parse_constant=refuse)["arguments"]
    assert (row["first"], row["sum"]) == ([None, 7], None)


def test_json_counts_arrays_as_cutile_passes_them(run: Run) -> None:
    ran = run("interpret", GELU, "--grid", "1,2", "--arg", "bf16:2x8", "--arg", "zeros:bf16:2x8", "--json")
    x, out = json.loads(ran.out)["arguments"]
    assert (x["dtype"], x["shape"], len(x["first"]), out["shape"]) == ("bf16", [2, 8], 6, [2, 8])
    assert x["name"] != out["name"]


def test_interpret_passes_arrays_as_cutile_does(run: Run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((7, 65)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npy"
    arguments = ["--arg", f"bf16:{tmp_path / 'x.npy'}", "--arg", "zeros:bf16:7x65"]
    ran = run("interpret", GELU, "--grid", "1,7", *arguments, "--save", f"1={out}")
    assert ran.code == 0, ran.err
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(np.load(out), expected, atol=0.02)


def test_random_arguments_follow_the_seed(run: Run, add_one: Path) -> None:
    words = ["interpret", add_one, "--pointers", "--arg", "f32:100", "--arg", "1", "--seed"]
    one, again, two = (run(*words, seed).out for seed in ("1", "1", "2"))
    assert one == again != two


def test_what_the_interpreter_traps_has_its_place_in_the_text(run: Run, add_one: Path) -> None:
    words = ["interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1"]
    race = run(*words, "--grid", "2")
    assert race.code == 8 and f"{add_one}:5:" in race.err and f"{add_one}:7:" in race.err
    assert run(*words, "--grid", "2", "--no-sanitize").code == 0
    outside = run(*words[:4], "zeros:f32:0", "--arg", "1")
    assert outside.code == 8 and "beyond its end" in outside.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--arg", "zeros:f32:1"], 2, "has 2 arguments, 1 are given"),
        (["--arg", "zeros:f16:1", "--arg", "1"], 2, "points to f32, it is given f16"),
        (["--arg", "1", "--arg", "1"], 2, "is ptr<f32>, it is given no array"),
        (["--arg", "zeros:f32:1", "--arg", "zeros:i32:1"], 2, "is i32, it is given an array"),
        (["--arg", "zeros:f32:1", "--arg", "1.5"], 6, "1.5"),
        (["--arg", "zeros:f32:1", "--arg", "3000000000"], 6, "does not fit i32"),
        (["--arg", "zeros:f32:1", "--arg", "x"], 2, "--arg 'x'"),
        (["--arg", "zeros:f99:1", "--arg", "1"], 2, "--arg 'zeros:f99:1'"),
        (["--arg", "missing.npy", "--arg", "1"], 2, "--arg missing.npy"),
        (["--arg", "f32:999999999x9999999", "--arg", "1"], 2, "--arg f32:999999999x9999999"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "0x1"], 2, "--grid '0x1'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "1,1,1,1"], 2, "--grid"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "0"], 2, "--grid '0'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "99999999999"], 2, "--grid '99999999999'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "9" * 5000], 2, "--grid '999"),
        (["--arg", f"zeros:f32:{'9' * 5000}", "--arg", "1"], 2, "--arg zeros:f32:999"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--grid", "1,65536"], 2, "--grid '1,65536'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--seed", "-1"], 2, "--seed"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--entry", "other"], 2, "no entry @other"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--save", "1=x.npy"], 2, "--save '1=x.npy'"),
        (["--arg", "zeros:f32:1", "--arg", "1", "--save", "0=/no/such/folder/x.npy"], 2, "no folder /no/such/folder"),
    ],
)
def test_arguments_that_do_not_fit(run: Run, add_one: Path, words: list[str], code: int, said: str) -> None:
    ran = run("interpret", add_one, "--pointers", *words)
    assert ran.code == code and said in ran.err and ran.out == ""


def test_interpret_runs_no_entry_that_was_not_chosen(run: Run, add_one: Path) -> None:
    one = add_one.read_text()
    words = ["interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1"]
    entry = one[one.index("  entry") : one.rindex("}")]
    add_one.write_text(one.replace(entry, entry + entry.replace("@add_one", "@second")))
    ran = run(*words)
    assert ran == (2, "", f"error: {add_one} has 2 entries\n  next: --entry, one of add_one, second\n")
    assert run(*words, "--entry", "second").code == 0
    ran = run(*words, "--entry", "")
    assert ran.code == 2 and "no entry @\n" in ran.err
    add_one.write_text(one.replace(entry, ""))
    for more in ([], ["--entry", "add_one"]):
        ran = run(*words, *more)
        assert ran.code == 2 and f"{add_one} has no entries, so there is nothing to run" in ran.err


def _npy(header: str) -> bytes:
    padded = f"{header:117}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no array",
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 7), }"),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': ((((("),
    ],
    ids=["empty", "other", "too large", "header"],
)
def test_an_array_file_that_is_none(run: Run, add_one: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    for prefix in ("", "f32:"):
        ran = run("interpret", add_one, "--pointers", "--arg", f"{prefix}{tmp_path / 'x.npy'}", "--arg", "1")
        assert ran.code == 2 and "x.npy: " in ran.err and ran.out == ""


def test_arrays_of_what_is_no_number_are_refused(run: Run, add_one: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for array in (np.ones(2, np.complex64), np.array(["1", "2"]), np.ones(2, "M8[s]"), np.ones(2, [("a", "f4")])):
        np.save(path, array)
        for prefix in ("", "f32:"):
            ran = run("interpret", add_one, "--pointers", "--arg", f"{prefix}{path}", "--arg", "1")
            assert ran.code == 2 and "neither an integer nor a real number" in ran.err
    with path.open("wb") as file:
        np.savez(file, x=np.ones(2, np.float32))
    assert run("interpret", add_one, "--pointers", "--arg", path, "--arg", "1").code == 2


def test_an_array_file_of_the_other_byte_order(run: Run, add_one: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "x.npy", tmp_path / "out.npy"
    np.save(path, np.array([41, 7], ">f4"))
    assert run("interpret", add_one, "--pointers", "--arg", path, "--arg", "2", "--save", f"0={out}").code == 0
    assert np.load(out).tolist() == [42, 7]


def test_an_argument_is_saved_as_often_as_asked_for(run: Run, add_one: Path, tmp_path: Path) -> None:
    files = [tmp_path / "one.npy", tmp_path / "two.npy"]
    saves = [word for file in files for word in ("--save", f"0={file}")]
    assert run("interpret", add_one, "--pointers", "--arg", "zeros:f32:1", "--arg", "1", *saves).code == 0
    assert [np.load(file).tolist() for file in files] == [[1], [1]]


def test_text_is_what_the_printer_prints(run: Run, add_one: Path, tmp_path: Path) -> None:
    run("assemble", add_one, "-o", tmp_path / "k")
    assert run("disassemble", tmp_path / "k").out == text.print_module(bytecode.read((tmp_path / "k").read_bytes()))


def test_debug_information_is_written_when_asked_for(run: Run, add_one: Path, tmp_path: Path) -> None:
    code = tmp_path / "k.tilebc"
    assert run("assemble", add_one, "-o", code).code == 0
    assert add_one.name.encode() not in code.read_bytes()
    assert run("assemble", add_one, "--debug-info", "-o", code).code == 0
    assert add_one.name.encode() in code.read_bytes()
    printed = run("assemble", add_one, "--debug-info", "--emit", "mlir").out
    assert f'in "{tmp_path}">' in printed and " loc(#cuda_tile.di_loc<loc(" in printed
    ran = run("assemble", add_one, "--debug-info", "--target", "sm_90")
    assert ran.code == 2 and "a cubin is made without it" in ran.err


def test_a_file_of_several_modules_is_verified_but_not_assembled(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    path.write_text("module {\ncuda_tile.module @a { entry @k() {} }\ncuda_tile.module @b {}\n}\n")
    assert run("verify", path).out == f"{path}: ok: @k\n"
    ran = run("assemble", path)
    assert ran.code == 2 and "has 2 modules\n  next: keep each module in a file of its own" in ran.err
