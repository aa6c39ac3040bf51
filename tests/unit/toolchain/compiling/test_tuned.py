"""Tuned rows are stale if their compiler or the measured code has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import kernels_mlir
from toolchain.compiling import tuned
from toolchain.contract.entries import TunedRow, entries_of
from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError
from toolchain.pinned.pins import pins

CODE = {"py": b"gelu_sm_90_wide_bf16 by py", "mlir": b"gelu_sm_90_wide_bf16 by mlir"}


def row(**measured: Any) -> TunedRow:
    code = {source: tuned.code_hash(code, "gelu_sm_90_wide_bf16") for source, code in CODE.items()}
    tools = {"tileiras": pins().tools["tileiras"].expected()}
    table: dict[str, Any] = {
        "op": "gelu", "class": "wide", "dtypes": ["bf16"], "sources": ["py", "mlir"], "variant": "sm_90_wide",
        "constants": {"BN": 512}, "grid": ["cdiv(N, BN)", "M", "1"],
        "measured": {"dtype": "bf16", "tools": tools, "code": code, **measured},
    }  # fmt: skip
    return TunedRow(Path("sm_90.toml"), 1, "sm_90", table)


def code_of(spec: EntrySpec) -> bytes:
    assert (spec.symbol, spec.targets) == ("gelu_sm_90_wide_bf16", ("sm_90",))
    return CODE[spec.source]


def test_what_was_measured_with_the_same_things_is_fresh() -> None:
    assert tuned.stale([row()], code_of) == []
    assert tuned.stale([row()], lambda _: None) == [], "nothing is known of code that is not at hand"


def test_what_nobody_measured_cannot_be_stale() -> None:
    table = {key: value for key, value in row().table.items() if key != "measured"}
    predicted = replace(row(), table={**table, "predicted": {"us": {}}})
    assert tuned.stale([predicted], lambda spec: code_of(spec) + b", changed") == []


def test_another_compiler_makes_a_row_stale() -> None:
    (found,) = tuned.stale([old := row(tools={"tileiras": "0" * 64})], code_of)
    assert (found.row, found.why) == (old, "tileiras has changed")
    (found,) = tuned.stale([row(tools={"nvcc": "0" * 64})], code_of)
    assert found.why == "nvcc has changed"


def test_other_code_makes_a_row_stale() -> None:
    (found,) = tuned.stale([row()], lambda spec: code_of(spec) + b", changed" * (spec.source == "py"))
    assert found.why == "the code of source py has changed"
    (found,) = tuned.stale([row(code={})], code_of)
    assert found.why == "the code of source py has changed; the code of source mlir has changed"


def test_code_that_cannot_be_made_any_more_makes_a_row_stale() -> None:
    def none(spec: EntrySpec) -> bytes:
        raise SourceError(f"{spec.source} has no such kernel")

    (found,) = tuned.stale([row()], none)
    assert found.why == "py has no such kernel; mlir has no such kernel"


def test_the_hash_of_code_is_of_all_but_the_entrys_name() -> None:
    (spec,) = (spec for spec in entries_of("mlir") if spec.symbol == "gelu_1024_bf16")
    renamed = replace(spec, symbol="gelu_by_a_much_longer_name_bf16")

    def hashed(entry: EntrySpec) -> str:
        return tuned.code_hash(kernels_mlir.SOURCE.bytecode(entry), entry.symbol)

    assert hashed(spec) == hashed(renamed)
    assert hashed(spec) != hashed(replace(spec, hints={"sm_90": {"occupancy": 7}}))
    assert hashed(spec) != hashed(replace(spec, aligned=()))
    assert tuned.code_hash(b".entry a() {}", "a") == tuned.code_hash(b".entry bb() {}", "bb"), (
        "the text of another form"
    )
