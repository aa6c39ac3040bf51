"""The rows that compare with cuda-tile's own tools. Here stand-ins of ours play these tools, right and wrong ones: what
is tested is that a difference is seen. The tools themselves are tested in tests/native."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cases import CASES
from conformance.native import ABSENT, native_rows
from conformance.result import Row
from toolchain.bundle import Bundle
from toolchain.native.tools import HERE, NativeToolchain, NativeTools
from toolchain.pins import file_sha256
from toolchain.runtime import open_executor

pytestmark = pytest.mark.needs("toolchain")

HEAD = f"""#!{sys.executable}
import sys
from pathlib import Path
from toolchain.tileir import bytecode, text
args = sys.argv[1:]
out = Path(args[args.index("-o") + 1]) if "-o" in args else None
"""
PARSE = 'module = text.parse(Path("k.mlir").read_text(), filename="k.mlir")\n'
GOOD = {
    "cuda-tile-opt": PARSE + "print(text.print_module(module))\n",
    "cuda-tile-translate": PARSE
    + 'version = next(a.split("=")[1] for a in args if a.startswith("--bytecode-version="))\n'
    + "out.write_bytes(bytecode.write(module, version))\n",
    "cuda-tile-optimize": 'out.write_bytes(Path("k.tilebc").read_bytes())\n',
}
CASE = [case for case in CASES if case.op == "gelu"][:1]


def tools(prefix: Path, **changed: str) -> NativeTools:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "scratch").mkdir()
    for name, body in {**GOOD, **{key.replace("_", "-"): value for key, value in changed.items()}}.items():
        (prefix / "bin" / name).write_text(HEAD + body)
        (prefix / "bin" / name).chmod(0o755)
    paths = {name: f"bin/{name}" for name in GOOD}
    sha256 = {name: file_sha256(prefix / path) for name, path in paths.items()}
    return NativeTools(NativeToolchain(prefix, "13.3", "23.1.4", HERE, paths, sha256), prefix / "scratch", None)


def rows(
    bundle: Bundle, native: NativeTools | str, sources: Sequence[str] = ("mlir", "py"), dtype: str = "f32"
) -> list[Row]:
    found = native_rows(bundle, native, lambda: open_executor("cpu"), CASE, sources=sources, dtypes=[dtype], seed=1)
    return list(found)


def test_without_tools_every_cell_says_so(bundle: Bundle):
    found = rows(bundle, "nothing was built")
    assert [row.cell for row in found] == ["gelu-mlir-f32-native", "gelu-py-f32-native"]
    assert {row.status for row in found} == {"not run"}
    assert all(row.detail == f"{ABSENT}: nothing was built" for row in found)


def test_tools_that_agree_pass_every_check(bundle: Bundle, tmp_path: Path):
    found = rows(bundle, tools(tmp_path))
    assert {row.status for row in found} == {"passed"}
    shapes = {row.shape for row in found if row.source == "py"}
    assert {"accepted", "bytecode 13.1", "bytecode 13.3"} < shapes
    assert any(shape.startswith("optimized ") for shape in shapes)


def test_what_a_version_cannot_hold_is_not_run_and_says_why(bundle: Bundle, tmp_path: Path):
    """The approximate tanh of 16-bit GELUs came with bytecode 13.2."""
    found = rows(bundle, tools(tmp_path), ["mlir"], "bf16")
    (old,) = (row for row in found if row.shape == "bytecode 13.1")
    assert old.status == "not run"
    gelus = [
        e.spec.symbol for e in bundle.entries if (e.spec.source, e.spec.op, e.spec.dtype) == ("mlir", "gelu", "bf16")
    ]
    why = "cuda_tile.tanh: bytecode 13.1 has no rounding_mode"
    assert old.detail == f"{len(gelus)} entries, the first {gelus[0]}: {why}"
    assert {row.status for row in found if row is not old} == {"passed"}


def test_entries_that_were_checked_and_entries_that_were_not_are_two_rows(bundle: Bundle, tmp_path: Path):
    newer, older = (bundle.find("mlir", f"gelu_1024_{dtype}") for dtype in ("bf16", "f32"))
    mixed = replace(older, spec=replace(older.spec, symbol="older", dtype="bf16"))
    both = Bundle(bundle.root, (newer, mixed), {})
    found = [row for row in rows(both, tools(tmp_path), ["mlir"], "bf16") if row.shape == "bytecode 13.1"]
    assert [row.status for row in found] == ["passed", "not run"]
    assert found[0].detail == "1 entries"
    assert found[1].detail.startswith("1 entries, the first gelu_1024_bf16: ")


def statuses(found: list[Row], shape: str) -> set[str]:
    return {row.status for row in found if row.shape.startswith(shape)}


def test_text_that_is_refused_is_an_error_with_the_tools_message(bundle: Bundle, tmp_path: Path):
    found = rows(bundle, tools(tmp_path, cuda_tile_opt="sys.exit('k.mlir:1:1: error: what is this')\n"), ["mlir"])
    assert statuses(found, "accepted") == {"error"}
    assert "what is this" in next(row.detail for row in found if row.shape == "accepted")
    assert statuses(found, "bytecode") == {"passed"}


def test_one_byte_that_differs_is_a_failure_that_names_the_place(bundle: Bundle, tmp_path: Path):
    body = GOOD["cuda-tile-translate"] + "d = bytearray(out.read_bytes()); d[0x20] ^= 1; out.write_bytes(bytes(d))\n"
    found = rows(bundle, tools(tmp_path, cuda_tile_translate=body), ["mlir"])
    assert statuses(found, "bytecode") <= {"failed", "error"}
    assert statuses(found, "accepted") == {"passed"}


def test_a_wrong_optimization_is_caught_by_the_numbers(bundle: Bundle, tmp_path: Path):
    body = (
        'module = bytecode.read(Path("k.tilebc").read_bytes())\n'
        "t = text.print_module(module)\n"
        'assert "mulf" in t\n'
        'out.write_bytes(bytecode.write(text.parse(t.replace("mulf", "addf"), filename="k.mlir")))\n'
    )
    found = rows(bundle, tools(tmp_path, cuda_tile_optimize=body), ["mlir"])
    assert statuses(found, "optimized") == {"failed"}


def test_an_optimizer_that_fails_is_an_error_for_that_entry(bundle: Bundle, tmp_path: Path):
    found = rows(bundle, tools(tmp_path, cuda_tile_optimize="sys.exit('cannot')\n"), ["mlir"])
    failed = [row for row in found if row.shape.startswith("optimized")]
    assert failed
    assert {row.status for row in failed} == {"error"}
    assert all("cannot" in row.detail for row in failed)
