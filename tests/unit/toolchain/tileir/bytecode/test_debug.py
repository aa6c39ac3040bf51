"""Places in bytecode: those of the text, those made from where operations stand, and damaged sections."""

from __future__ import annotations

from pathlib import Path

from toolchain.tileir import bytecode, text
from toolchain.tileir.bytecode.debug import CALL_SITE, DebugReader
from toolchain.tileir.bytecode.encoding import varint
from toolchain.tileir.dialect import debug
from toolchain.tileir.dialect.control import ModuleOp

SCOPES = Path(__file__).parents[1] / "text" / "corpus" / "debug-scopes.mlir"


def places(module: ModuleOp) -> list[debug.Place | None]:
    (entry,) = module.entries.values()
    return [debug.attached(op) for op in entry.walk()]


def test_scopes_of_the_text_are_written_and_read() -> None:
    module = text.parse(SCOPES.read_text(), filename="k.mlir")
    code = bytecode.write(module, debug_info=True)
    read = bytecode.read(code)
    unknown_is_absent = [None if place == debug.UNKNOWN else place for place in places(module)]
    assert places(read) == unknown_is_absent and any(isinstance(p, debug.CallSite) for p in places(read))
    assert bytecode.write(read, debug_info=True) == code
    assert bytecode.write(module) == bytecode.strip_debug(code)
    assert b"/src" in code and b"/src" not in bytecode.write(module)


def test_a_scope_is_made_from_where_an_entry_stands() -> None:
    source = 'entry @k(%n: tile<i32>) {\n  absi %n : tile<i32>\n  absi %n : tile<i32> loc("a/b.py":5:6)\n}\n'
    module = text.parse(source, filename="/src/k.mlir")
    entry, first, second, end = places(bytecode.read(bytecode.write(module, debug_info=True)))
    file = debug.File("k.mlir", "/src")
    scope = debug.Subprogram(file, 1, "k", "k", debug.CompileUnit(file), 1)
    assert entry == end == debug.Scoped(debug.Location("/src/k.mlir", 1, 1), scope)
    assert first == debug.Scoped(debug.Location("/src/k.mlir", 2, 3), scope)
    assert second == debug.Scoped(debug.Location("a/b.py", 5, 6), scope)


def test_a_place_that_names_itself_is_none() -> None:
    item = b"".join(map(varint, (CALL_SITE, 1, 1)))
    assert DebugReader([0], [1], [item], []).places(0) == [None]


def test_the_producer_is_kept_from_13_3_on() -> None:
    module = text.parse('cuda_tile.module @m attributes {producer = "by hand"} { entry @k() {} }', filename="k")
    for version, kept in (("13.4", True), ("13.3", True), ("13.2", False)):
        read = bytecode.read(bytecode.write(module, version))
        assert (read.producer is not None and read.producer.data == "by hand") == kept
