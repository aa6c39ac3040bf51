from __future__ import annotations

from pathlib import Path

import pytest

import tilestack as ts
from tilestack.api.launches import code
from toolchain.caching.cache import Cache, key
from toolchain.compiling.stages import OPTIONS
from toolchain.errors import ToolchainError
from toolchain.pinned.tools import pinned_fingerprint


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A machine without the tools, and with a compile cache of its own."""

    def missing(name: str) -> None:
        raise ToolchainError(f"{name}: missing")

    monkeypatch.setattr(code, "tool", missing)
    cache = Cache(tmp_path / "cache")
    monkeypatch.setattr(code.Cache, "configured", lambda: cache)
    return cache


def test_without_a_compiler_the_error_says_what_to_do(scaled: Path, no_compiler: Cache) -> None:
    assert no_compiler.root.name == "cache"
    with pytest.raises(ts.ToolchainError, match=r"(?s)scaled is not compiled for sm_90.*: missing.*that bundle"):
        ts.load(scaled).inspect("sm_90")


def test_a_cubin_that_was_compiled_elsewhere_needs_no_compiler(scaled: Path, no_compiler: Cache) -> None:
    made = ts.load(scaled).compiled.code
    assert isinstance(made, code.Bytecode)
    no_compiler.put(key("assemble", made.payload, pinned_fingerprint("tileiras"), "sm_90", *OPTIONS), b"a cubin")
    assert made.cubin("sm_90") == b"a cubin"


@pytest.mark.needs("toolchain")
def test_what_a_cubin_uses(scaled: Path) -> None:
    used = ts.load(scaled).inspect("sm_90")
    assert used.symbol == "scaled" and used.registers > 4 and used.spills == 0
    assert used.mix["EXIT"] >= 1 and sum(used.mix.values()) == used.instructions
