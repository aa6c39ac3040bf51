"""The search for the LLVM that breaks a stack: the versions that are tried, and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import ToolchainError, UsageError
from toolchain.native import canary
from toolchain.native.canary import CUDA_TILE, TOOL, Outcome, bisect, provider, search

VERSIONS = [str(number) for number in range(16)]


@pytest.mark.parametrize("first_bad", range(17))
def test_bisection_finds_the_first_that_breaks_with_few_tries(first_bad: int):
    tried: list[str] = []

    def works(version: str) -> bool:
        tried.append(version)
        return int(version) < first_bad

    until, since = bisect(VERSIONS, works)
    assert until == (str(first_bad - 1) if first_bad else None)
    assert since == (str(first_bad) if first_bad < 16 else None)
    assert len(tried) <= 5


def test_what_could_not_be_tried_is_neither_good_nor_bad():
    assert bisect(["1", "2", "3"], lambda _: None) == (None, None)


def outcomes(version: str) -> dict[str, Outcome]:
    """The outcomes for LLVM 1 to 4: the barrier fails from 3 on, the tool from 4; cuda-tile is not available."""
    if version == "4":
        return {TOOL: Outcome(False, "no member named x")}
    return {
        TOOL: Outcome(True),
        "barrier.mlir": Outcome(version < "3", "" if version < "3" else "barrier0 is unknown"),
        "cluster.mlir": Outcome(True),
        "wgmma.mlir": Outcome(True),
        CUDA_TILE: Outcome(None, "could not be had"),
    }


def test_each_thing_has_its_own_interval_and_no_version_is_tried_twice():
    tried: list[str] = []

    def attempt(version: str) -> dict[str, Outcome]:
        tried.append(version)
        return outcomes(version)

    rows = {row["probe"]: row for row in search("13.1", ["1", "2", "3", "4"], attempt)}
    assert (rows[TOOL]["works_until"], rows[TOOL]["breaks_from"]) == ("3", "4")
    assert rows[TOOL]["said"] == "no member named x"
    assert (rows["barrier.mlir"]["works_until"], rows["barrier.mlir"]["breaks_from"]) == ("2", "3")
    assert rows["cluster.mlir"]["breaks_from"] == "4"
    assert "tool does not build" in rows["cluster.mlir"]["said"]
    assert rows[CUDA_TILE]["not_run"] == "could not be had"
    assert "works_until" not in rows[CUDA_TILE]
    assert len(tried) == len(set(tried))


def test_what_was_seen_replaces_what_was_seen_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(canary, "SEEN", tmp_path / "canary.toml")
    assert canary.read() == []
    said = 'error: "custom" op\\x41 \u2192'
    canary.write([{"stack": "13.1", "probe": "a", "works_until": "1"}, {"stack": "13.3", "probe": "a"}])
    canary.write([{"stack": "13.1", "probe": "a", "breaks_from": "2", "said": said}])
    assert canary.read() == [
        {"stack": "13.1", "probe": "a", "breaks_from": "2", "said": said},
        {"stack": "13.3", "probe": "a"},
    ]


def test_where_an_llvm_comes_from():
    assert provider("22.1.8") == "system"
    assert provider("23.1.4") == "system"
    assert provider("23.1.1") == "source"
    assert provider("a" * 40) == "source"
    with pytest.raises(UsageError, match=r"LLVM 21\.1\.0: no image has it"):
        provider("21.1.0")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a.cpp:1:1: error: no member named 'x'\nError 1 while executing", "a.cpp:1:1: error: no member named 'x'"),
        ("CMake Error at CMakeLists.txt:3 (find_package):\n  text", "CMake Error at CMakeLists.txt:3 (find_package):"),
        ("killed", "cuda_tile 1.0 does not build:"),
    ],
)
def test_a_package_that_does_not_build_is_told_by_a_line_of_its_tools(lines: str, said: str):
    assert canary._last_words(ToolchainError(f"cuda_tile 1.0 does not build:\n{lines}")) == said
