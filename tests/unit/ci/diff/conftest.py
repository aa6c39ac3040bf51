from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import ci.diff.bisect
import ci.diff.compare
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.compiling.cubin import Usage
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.sources import load_source

PLAIN = Usage("k", 64, 1024, 0, 0, 400, 0, 0, {"HGMMA": 16}, {"UTMALDG": 2}, {"FFMA": 384, "HGMMA": 16})
Make = Callable[..., Bundle]


def spec(symbol: str = "gelu_1024_f16") -> EntrySpec:
    return next(spec for spec in load_source("kernels_py").entries() if spec.symbol == symbol)


@pytest.fixture
def usages(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, Usage]:
    """What each cubin uses; to be filled by a test."""
    known: dict[bytes, Usage] = {}

    def inspect_all(cubins: Sequence[bytes], *_: object) -> Iterator[list[Usage]]:
        return iter([[known[cubin]] for cubin in cubins])

    monkeypatch.setattr(ci.diff.compare, "inspect_all", inspect_all)
    monkeypatch.setattr(ci.diff.compare, "same_machine_code", operator.eq)
    monkeypatch.setattr(ci.diff.bisect, "inspect_all", inspect_all)
    return known


@pytest.fixture
def bundle(tmp_path: Path) -> Make:
    """Writes a bundle with these cubins, by symbol and target."""

    def make(
        name: str, cubins: Mapping[str, Mapping[str, bytes]], *, tools: Mapping[str, str] | None = None,
        code: bytes = b"code",
    ) -> Bundle:  # fmt: skip
        rows = [Compiled(spec(symbol), tile_ir(code, "13.4"), by_target) for symbol, by_target in cubins.items()]
        used = {each: {"version": version, "sha256": version} for each, version in (tools or {}).items()}
        return write(tmp_path / name, rows, used)

    return make


def other(**changes: object) -> Usage:
    return replace(PLAIN, **changes)
