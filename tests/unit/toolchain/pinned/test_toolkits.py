"""Other releases of the compiler. The tools here are shell scripts; docs/diff.md shows the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.compiling.stages import stages
from toolchain.errors import ToolchainError, UsageError
from toolchain.pinned import toolkits
from toolchain.pinned.pins import file_sha256, pins
from toolchain.pinned.toolkits import PARTS, Wheel, mixed, place, toolkit

SCRIPT = """#!/bin/sh
PATH=/usr/bin:/bin
here=$(dirname "$0")
for last; do :; done
case "$2$3" in *--output-file=*) ;; *) exit 2 ;; esac
output=${3#--output-file=}
{ echo NAME; cat "$here/ptxas" "$here/../lib/libnvvm.so.4"; cat "$last"; } > "$output"
"""
VERSIONS = ("1.0.1", "2.0.2")


def made_up(version: str) -> None:
    folder = place(version)
    for name in PARTS:
        path = folder / pins().tools[name].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT.replace("NAME", f"tileiras {version}") if name == "tileiras" else f"{name} {version}\n")
        path.chmod(0o755)
    hashes = {name: file_sha256(folder / pins().tools[name].path) for name in PARTS}
    (folder / "sha256.json").write_text(json.dumps(hashes))


@pytest.fixture(autouse=True)
def two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    wheels = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")
    rows = {version: tuple(Wheel(name, version, ("0" * 64,)) for name in wheels) for version in VERSIONS}
    monkeypatch.setattr(toolkits, "releases", lambda: rows)
    toolkit.cache_clear()
    for version in VERSIONS:
        made_up(version)


def compiled(kit: toolkits.Toolkit) -> list[str]:
    return stages(kit.tool)["tile-ir"].run(b"code\n", "sm_90").decode().splitlines()


def test_a_release_compiles_with_its_own_parts() -> None:
    assert compiled(toolkit("1.0.1")) == ["tileiras 1.0.1", "ptxas 1.0.1", "libnvvm 1.0.1", "code"]
    assert toolkit("1.0.1").name == "1.0.1"


def test_a_mixture_has_each_part_from_where_it_was_asked() -> None:
    one, two = map(toolkit, VERSIONS)
    kit = mixed({"tileiras": two, "ptxas": one, "libnvvm": two})
    assert compiled(kit) == ["tileiras 2.0.2", "ptxas 1.0.1", "libnvvm 2.0.2", "code"]
    assert kit.name == "tileiras 2.0.2 + ptxas 1.0.1 + libnvvm 2.0.2"
    prints = {made.tool("tileiras").fingerprint for made in (one, two, kit)}
    assert len(prints) == 3
    kit.tool("ptxas").path.write_text("other")
    with pytest.raises(ToolchainError, match="ptxas is damaged"):
        mixed({"tileiras": two, "ptxas": one, "libnvvm": two})


def test_what_is_unknown_missing_or_damaged() -> None:
    with pytest.raises(UsageError, match="no tileiras 3"):
        toolkit("3.0.0")
    (place("1.0.1") / "nvidia/cu13/bin/ptxas").write_text("other")
    with pytest.raises(ToolchainError, match="ptxas is damaged"):
        toolkit("1.0.1")
    (place("2.0.2") / "sha256.json").unlink()
    with pytest.raises(ToolchainError, match=r"is not installed\n  next: nox -s toolkit -- 2\.0\.2"):
        toolkit("2.0.2")


def test_the_table_has_every_wheel_of_a_release_with_its_hashes() -> None:
    table = toolkits.tomllib.loads(toolkits.TABLE.read_text())
    assert "13.4.92" in table
    for wheels in table.values():
        assert sorted(wheels) == sorted({pins().tools[name].wheel for name in PARTS})
        assert all(len(sha256) == 64 for row in wheels.values() for sha256 in row["sha256"])
