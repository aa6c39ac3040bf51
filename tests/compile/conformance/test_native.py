"""The rows that compare with cuda-tile's own tools. Here stand-ins of ours play these tools, right and wrong ones: what
is tested is that a difference is seen. The tools themselves are tested in tests/native."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cases import CASES, Case
from conformance.native import ABSENT, MODULO, native_checks
from conformance.results.result import CellResult
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.targets import BYTECODE
from toolchain.native.tools import HERE, NativeToolchain, NativeTools
from toolchain.pinned.pins import file_sha256
from toolchain.runtime import open_executor
from toolchain.tileir.bytecode import read
from toolchain.tileir.bytecode import write as write_bytecode
from toolchain.tileir.dialect.attrs import HintsAttr
from toolchain.tileir.text import parse, print_module

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
    "cuda-tile-optimize": 'data = Path("k.tilebc").read_bytes()\n'
    'out.write_bytes(data if "--emit-bytecode" in args else b"// text")\n',
}
Hints = tuple[tuple[str, tuple[tuple[str, int | bool], ...]], ...]
CASE = [case for case in CASES if case.op == "gelu"][:1]
# As cuda-tile-translate writes hints: the i1 integer 0 for false.
INTEGERS = (
    "from toolchain.tileir.bytecode import attributes\n"
    "from toolchain.tileir.bytecode.encoding import varint\n"
    "from toolchain.tileir.dialect.types import i1\n"
    "def hints(self, value, *, tagged=False):\n"
    "    made = bytearray(varint(attributes.HINTS) if tagged else b'') + varint(len(value.data))\n"
    "    for architecture, pairs in value.data:\n"
    "        made += varint(self.string_index(architecture)) + varint(attributes.DICTIONARY) + varint(len(pairs))\n"
    "        for key, hint in pairs:\n"
    "            kind = i1 if isinstance(hint, bool) else attributes.i32\n"
    "            made += varint(self.string_index(key)) + varint(attributes.INTEGER)\n"
    "            made += varint(self.type_index(kind)) + varint(int(hint))\n"
    "    return bytes(made)\n"
    "attributes.AttributeWriter.hints = hints\n"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The kernels of two ops: a simple one, and one with loads and stores that may not use TMA."""
    sources = [importlib.import_module(name).SOURCE for name in ("kernels_mlir", "kernels_py")]
    specs = [(source, spec) for source in sources for spec in source.entries() if spec.op in ("gelu", "argmax_parts")]
    compiled = [Compiled(spec, source.artifact(spec), {}) for source, spec in specs]
    return write(tmp_path_factory.mktemp("kernels") / "bundle", compiled, {})


# As cuda-tile 13.1.3 does: it knows neither a hint that came later nor any bytecode after 13.1.
OLD_TEXT = """
data = Path("k.mlir").read_text()
for word in ("num_worker_warps_per_cta", "default = {", "rounding<approx>"):
    if word in data:
        sys.exit(f"k.mlir:3:1: error: unknown param {word}")
"""
OLD = {
    "cuda_tile_opt": OLD_TEXT + GOOD["cuda-tile-opt"],
    "cuda_tile_translate": OLD_TEXT
    + "if '--bytecode-version=13.1' not in args:\n"
    + "    sys.exit('for the --bytecode-version option: the supported versions are [13.1, 13.1]')\n"
    + GOOD["cuda-tile-translate"],
}


def tools(prefix: Path, cuda_tile: str | None = "13.3.3", without: Sequence[str] = (), **changed: str) -> NativeTools:
    """Stand-ins for the tools of that cuda-tile, on LLVM 23; 13.3.3 has no defect that we know."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "scratch").mkdir()
    for name, body in {**GOOD, **{key.replace("_", "-"): value for key, value in changed.items()}}.items():
        (prefix / "bin" / name).write_text(HEAD + body)
        (prefix / "bin" / name).chmod(0o755)
    paths = {name: f"bin/{name}" for name in GOOD if name not in without}
    sha256 = {name: file_sha256(prefix / path) for name, path in paths.items()}
    stack, llvm = ("13.1", "22.1.8") if cuda_tile == "13.1.3" else ("13.3", "23.1.4")
    toolchain = NativeToolchain(prefix, stack, llvm, HERE, paths, sha256, cuda_tile)
    return StandIns(toolchain, prefix / "scratch", None)


class StandIns(NativeTools):
    """Runs the stand-ins in this process, as starting Python takes longer than all that they do. One that changes our
    modules has a process of its own."""

    def _execute(self, command: list[str], folder: Path) -> tuple[int, str, str]:
        body = Path(command[0]).read_text()
        if INTEGERS in body:
            return super()._execute(command, folder)
        said = io.StringIO()
        try:
            with contextlib.chdir(folder), contextlib.redirect_stdout(said):
                names: dict[str, object] = {}
                exec(body.replace("sys.argv[1:]", repr(command[1:])), names)
        except SystemExit as error:
            return 1, said.getvalue(), str(error.code)
        except Exception as error:  # noqa: BLE001 - whatever it is, a process would print it and end with 1
            return 1, said.getvalue(), repr(error)
        return 0, said.getvalue(), ""


def rows(
    bundle: Bundle,
    native: NativeTools | str,
    sources: Sequence[str] = ("mlir", "py"),
    dtype: str = "f32",
    cases: Sequence[Case] = CASE,
    *,
    full: bool = True,
) -> list[CellResult]:
    with native_checks(
        bundle, native, lambda: open_executor("cpu"), cases, sources=sources, dtypes=[dtype], seed=1, full=full
    ) as checks:
        return [row for check in checks for row in check.rows()]


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
    mixed = replace(older, spec=replace(older.spec, dtype="bf16"))
    both = Bundle(bundle.root, (newer, mixed), {})
    found = [row for row in rows(both, tools(tmp_path), ["mlir"], "bf16") if row.shape == "bytecode 13.1"]
    assert [row.status for row in found] == ["passed", "not run"]
    assert found[0].detail == "1 entries"
    assert found[1].detail.startswith("1 entries, the first gelu_1024_bf16: ")


def statuses(found: list[CellResult], shape: str) -> set[str]:
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


@pytest.mark.parametrize("missing", ["cuda-tile-opt", "cuda-tile-translate", "cuda-tile-optimize"])
def test_a_tool_that_the_version_has_not_is_not_run_and_the_rest_is(bundle: Bundle, tmp_path: Path, missing: str):
    found = rows(bundle, tools(tmp_path, without=[missing]), ["mlir"])
    not_run = [row for row in found if row.status == "not run"]
    shapes = {
        "cuda-tile-opt": ["accepted"],
        "cuda-tile-translate": ["bytecode 13.1", "bytecode 13.3"],
        "cuda-tile-optimize": ["optimized"],
    }[missing]
    assert [row.shape for row in not_run] == shapes
    assert {row.detail for row in not_run} == {f"cuda-tile 13.3.3 (stack 13.3) has no {missing}"}
    assert {row.status for row in found if row not in not_run} == {"passed"}


def hinted(bundle: Bundle, folder: Path, hints: Hints) -> Bundle:
    """A bundle of one entry with these hints."""
    entry = bundle.find("py", "gelu_any_f32")
    module = read(bundle.read(entry.bytecode), name="k")
    (made,) = module.entries.values()
    made.properties["optimization_hints"] = HintsAttr(hints)
    return write(folder, [Compiled(entry.spec, tile_ir(write_bytecode(module, BYTECODE), BYTECODE), {})], {})


def test_a_version_is_given_what_it_knows_and_what_it_cannot_is_not_run(bundle: Bundle, tmp_path: Path):
    old = tools(tmp_path / "old", "13.1.3", without=["cuda-tile-optimize"], **OLD)
    later = (("default", (("occupancy", 2),)), ("sm_90", (("occupancy", 2), ("num_worker_warps_per_cta", 4))))
    found = {row.shape: row for row in rows(hinted(bundle, tmp_path / "one", later), old, ["py"])}
    assert {shape: row.status for shape, row in found.items()} == {
        "accepted": "passed", "bytecode 13.1": "passed", "bytecode 13.3": "not run", "optimized": "not run",
    }  # fmt: skip
    warps = "1 entries; 1 without default, num_worker_warps_per_cta, hints that cuda-tile 13.1.3 does not know"
    assert found["accepted"].detail == found["bytecode 13.1"].detail == warps
    assert found["bytecode 13.3"].detail == "cuda-tile 13.1.3 (stack 13.1) writes bytecode 13.1 alone"
    assert found["optimized"].detail == "cuda-tile 13.1.3 (stack 13.1) has no cuda-tile-optimize"


def test_text_of_what_came_after_a_version_is_not_run_and_not_an_error(bundle: Bundle, tmp_path: Path):
    old = tools(tmp_path, "13.1.3", without=["cuda-tile-optimize"], **OLD)
    found = rows(bundle, old, ["mlir"], "bf16")
    assert {row.status for row in found} == {"not run"}
    (accepted,) = (row for row in found if row.shape == "accepted")
    assert "cuda_tile.tanh: bytecode 13.1 has no rounding_mode" in accepted.detail


def test_an_old_version_that_writes_other_bytes_still_fails(bundle: Bundle, tmp_path: Path):
    wrong = OLD["cuda_tile_translate"] + "d = bytearray(out.read_bytes()); d[0x20] ^= 1; out.write_bytes(bytes(d))\n"
    found = rows(bundle, tools(tmp_path, "13.1.3", **{**OLD, "cuda_tile_translate": wrong}), ["mlir"])
    assert statuses(found, "bytecode 13.1") <= {"failed", "error"}


def test_the_order_of_hints_is_nothing_to_fail_for(bundle: Bundle, tmp_path: Path):
    """MLIR sorts a dictionary by name; cuTile writes `occupancy` before `num_cta_in_cga`."""
    body = (
        "from toolchain.tileir.dialect.attrs import HintsAttr\n"
        + PARSE
        + "for op in module.walk():\n"
        + "    for name, hints in list(op.properties.items()):\n"
        + "        if isinstance(hints, HintsAttr):\n"
        + "            op.properties[name] = HintsAttr(tuple((of, tuple(sorted(row))) for of, row in hints.data))\n"
        + GOOD["cuda-tile-translate"].removeprefix(PARSE)
    )
    one = hinted(bundle, tmp_path / "one", (("sm_90", (("occupancy", 2), ("num_cta_in_cga", 1))),))
    found = rows(one, tools(tmp_path / "t", cuda_tile_translate=body), ["py"])
    assert statuses(found, "bytecode") == {"passed"}


def test_llvm_alone_runs_nothing_and_says_why(bundle: Bundle, tmp_path: Path):
    found = rows(bundle, tools(tmp_path, None, without=list(GOOD)), ["mlir"])
    assert [row.shape for row in found] == ["accepted", "bytecode 13.1", "bytecode 13.3", "optimized"]
    assert {row.status for row in found} == {"not run"}
    assert all(row.detail.startswith("this native toolchain, LLVM alone, has no cuda-tile-") for row in found)


TMA = [case for case in CASES if case.op == "argmax_parts"][:1]


def test_forbidden_tma_as_an_integer_passes_and_the_row_says_so(bundle: Bundle, tmp_path: Path):
    body = INTEGERS + GOOD["cuda-tile-translate"]
    found = rows(bundle, tools(tmp_path, cuda_tile_translate=body), ["py"], cases=TMA)
    compared = [row for row in found if row.shape.startswith("bytecode")]
    assert {row.status for row in compared} == {"passed"}
    for row in compared:
        assert row.detail == f"2 entries; 2 {MODULO}"
    plain = rows(bundle, tools(tmp_path / "plain"), ["py"], cases=TMA)
    assert {row.detail for row in plain if row.shape.startswith("bytecode")} == {"2 entries"}


def test_forbidden_tma_as_an_integer_hides_no_other_difference(bundle: Bundle, tmp_path: Path):
    body = INTEGERS + PARSE.replace(
        'Path("k.mlir").read_text()', 'Path("k.mlir").read_text().replace("allow_tma = false", "allow_tma = true")'
    )
    body += GOOD["cuda-tile-translate"].removeprefix(PARSE)
    found = rows(bundle, tools(tmp_path, cuda_tile_translate=body), ["py"], cases=TMA)
    assert statuses(found, "bytecode") == {"failed"}


def dense(bundle: Bundle, folder: Path, value: str) -> Bundle:
    """A bundle of one entry, with an i1 constant added to its bytecode."""
    entry = bundle.find("mlir", "gelu_any_f32")
    text = print_module(read(bundle.read(entry.bytecode), name="k"))
    head, brace, rest = text.partition(") {\n") if ") {\n" in text else text.partition("{\n")
    changed = f"{head}{brace}    %mask = constant <i1: {value}> : tile<4xi1>\n{rest}"
    made = write_bytecode(parse(changed, filename="k.mlir"), BYTECODE)
    return write(folder, [Compiled(entry.spec, tile_ir(made, BYTECODE), {})], {})


# As cuda-tile 13.3.2 on LLVM 23 writes them: one byte an element.
UNPACKED = (
    "from toolchain.tileir.dialect.attrs import DenseAttr\n"
    + PARSE
    + "for op in module.walk():\n"
    + "    value = op.properties.get('value')\n"
    + "    if isinstance(value, DenseAttr) and value.raw == b'\\x0d':\n"
    + "        op.properties['value'] = DenseAttr(b'\\x01\\x00\\x01\\x01', value.type)\n"
    + GOOD["cuda-tile-translate"].removeprefix(PARSE)
)


def test_a_known_defect_is_named_where_it_shows(bundle: Bundle, tmp_path: Path):
    mixed = dense(bundle, tmp_path / "mixed", "[true, false, true, true]")
    found = rows(mixed, tools(tmp_path / "t", "13.3.2", cuda_tile_translate=UNPACKED), ["mlir"])
    concerned = [row for row in found if row.shape.startswith(("bytecode", "optimized"))]
    assert len(concerned) == 3
    assert {row.status for row in concerned} == {"not run"}
    said = "cuda-tile 13.3.2 on LLVM 23 writes i1 constants with one byte an element"
    assert all(said in row.detail for row in concerned)
    assert statuses(found, "accepted") == {"passed"}


def test_what_a_known_defect_leaves_out_is_no_error_of_its_cases(bundle: Bundle, tmp_path: Path):
    """A case whose entry was not optimized runs nothing; other cases choose their entries as ever."""
    left_out = dense(bundle, tmp_path / "mixed", "[true, false, true, true]").find("mlir", "gelu_any_f32")
    others = [entry for entry in bundle.entries if entry.spec.symbol != "gelu_any_f32" or entry.spec.source != "mlir"]
    mixed = Bundle(bundle.root, (*others, left_out), {})
    few = [case for case in CASES if case.op == "gelu"][:3]
    for full in (False, True):
        native = tools(tmp_path / f"t{full}", "13.3.2")
        found = [row for row in rows(mixed, native, ["mlir"], cases=few, full=full) if "optimized" in row.shape]
        missing = [row for row in found if row.status != "passed"]
        assert [row.shape for row in missing] == ["optimized gelu_any_f32"]
        assert "writes i1 constants with one byte an element" in missing[0].detail
        assert any(row.status == "passed" for row in found)


def test_what_no_defect_explains_fails(bundle: Bundle, tmp_path: Path):
    mixed = dense(bundle, tmp_path / "mixed", "[true, false, true, true]")
    found = rows(mixed, tools(tmp_path / "newer", cuda_tile_translate=UNPACKED), ["mlir"])
    assert statuses(found, "bytecode") == {"error"}, "no defect of cuda-tile 13.3.3 is known"
    none = dense(bundle, tmp_path / "none", "false")
    body = GOOD["cuda-tile-translate"] + "d = bytearray(out.read_bytes()); d[0x20] ^= 1; out.write_bytes(bytes(d))\n"
    found = rows(none, tools(tmp_path / "other", "13.3.2", cuda_tile_translate=body), ["mlir"])
    assert statuses(found, "bytecode") <= {"failed", "error"}
    assert statuses(found, "optimized") == {"passed"}
