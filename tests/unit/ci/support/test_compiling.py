"""The compile half, with a shell script in place of tileiras."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.support.compiling import ExportedEntry, assemble, entries, install, rows_of, told
from ci.support.table import Settings
from toolchain.contract.artifact import tile_ir
from toolchain.contract.sources import load_source, packages
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.pinned.tools import Tool

BYTECODE = b"\x7fTileIR\x00\x0d\x03\x00\x00"  # a header of version 13.3


def tool(folder: Path, script: str, version: str = "13.2.51") -> Tool:
    path = folder / "tileiras"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Tool("tileiras", path, version, "", "")


def test_a_cubin_or_the_pair_that_does_not_fit(tmp_path: Path) -> None:
    writes = tool(tmp_path, 'for each; do case "$each" in --output-file=*) printf cubin > "${each#*=}";; esac; done')
    assert assemble(writes, BYTECODE, "sm_90") == b"cubin"
    refuses = tool(tmp_path, "echo 'error: invalid GPU architecture: 80' >&2; exit 1")
    assert assemble(refuses, BYTECODE, "sm_80") == "tileiras 13.2.51 does not read bytecode 13.3, only 13.1 13.2"
    unknown = tool(tmp_path, "echo 'error: something new' >&2; exit 1", "99.0.0")
    assert assemble(unknown, BYTECODE, "sm_80") == "error: something new"


def test_targets_with_the_same_outcome_share_a_row() -> None:
    (package, *_) = packages().values()
    one, two = load_source(package).entries()[:2]
    made = [ExportedEntry(one, tile_ir(BYTECODE, "13.3")), ExportedEntry(two, None, "cannot be written")]
    results = {(one.symbol, target): b"cubin" if target != "sm_90" else "error: no" for target in targets()}
    good, bad = sorted(rows_of("1.2.3", "13.3", "mlir", made, results), key=lambda row: len(row.targets), reverse=True)
    assert (good.of, good.exported, good.compiled, good.why) == (2, 1, 1, f"cannot be written (only {two.symbol})")
    assert (bad.compiled, bad.targets) == (0, ("sm_90",))
    assert bad.why == f"error: no (only {one.symbol}); cannot be written (only {two.symbol})"
    assert len(good.targets) == len(targets()) - 1


def test_an_error_names_its_entries_or_the_others() -> None:
    assert told("no", ["a"], ["a", "b", "c"]) == "no (only a)"
    assert told("no", ["a", "c"], ["a", "b", "c"]) == "no (all but b)"
    assert told("no", ["a", "b"], ["a", "b"]) == "no"


def test_an_error_of_all_entries_names_none() -> None:
    (package, *_) = packages().values()
    made = [ExportedEntry(spec, tile_ir(BYTECODE, "13.3")) for spec in load_source(package).entries()[:2]]
    (row,) = rows_of(
        "1.2.3", "13.3", "mlir", made, {(one.spec.symbol, target): "error: no" for one in made for target in targets()}
    )
    assert (row.compiled, row.why, row.targets) == (0, "error: no", tuple(targets()))


def test_the_entries_of_the_settings_are_portable_and_in_both_sources() -> None:
    found = entries(Settings.load())
    assert list(found) == Settings.load().sources
    assert all([spec.symbol for _, spec in rows] == Settings.load().entries for rows in found.values())
    with pytest.raises(UsageError, match="no portable entry nothing_f32"):
        entries(Settings(["13.3"], ["mlir"], ["nothing_f32"], 1))
    with pytest.raises(UsageError, match="no source is called none"):
        entries(Settings(["13.3"], ["none"], ["gelu_any_f32"], 1))


def test_a_version_without_locked_wheels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no wheels are locked for tileiras 1"):
        install("1.2.3", tmp_path, "uv")
