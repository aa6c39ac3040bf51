"""`tilestack verify`, without the toolchain's tools."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from toolchain.knobs import ROOT

from ..conftest import Run

GELU = ROOT / "kernels_mlir" / "gelu.mlir"


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


@pytest.mark.parametrize("command", ["verify", "assemble", "disassemble", "interpret"])
def test_files_that_cannot_be_read(run: Run, tmp_path: Path, command: str) -> None:
    for path in (tmp_path / "missing", tmp_path):
        ran = run(command, path)
        assert ran.code == 2 and f"{path} cannot be read" in ran.err


def test_a_file_of_several_modules_is_verified_but_not_assembled(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    path.write_text("module {\ncuda_tile.module @a { entry @k() {} }\ncuda_tile.module @b {}\n}\n")
    assert run("verify", path).out == f"{path}: ok: @k\n"
    ran = run("assemble", path)
    assert ran.code == 2 and "has 2 modules\n  next: keep each module in a file of its own" in ran.err
