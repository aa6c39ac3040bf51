"""An executor that records what reaches it, and a bundle of entries without files: what the launch checks need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import LaunchError
from toolchain.runtime.cpu import CpuExecutor


class Recorder(CpuExecutor):
    """A CPU executor that records launches instead of running them."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[str] = []
        self.launched: list[tuple[str, tuple[int, int, int], list[int], list[float]]] = []

    def prepare(self, bundle: Any, entry: Any, arrays: Sequence[Any], grid: tuple[int, int, int]) -> Any:  # noqa: ARG002
        self.prepared.append(entry.spec.symbol)

        def command(arrays: Sequence[Any], scalars: Sequence[float]) -> None:
            self.launched.append((entry.spec.symbol, grid, [a.pointer for a in arrays], list(scalars)))

        return command


FORM = tile_ir(b"", "13.4").form


@dataclass
class Entries:
    """The part of a bundle that a launch needs before it reaches the device: the choice of an entry."""

    specs: list[EntrySpec]
    asked: list[tuple[str, str, str, Mapping[str, int], frozenset[str]]] = field(default_factory=list)
    picks: dict[tuple[str, int], str] = field(default_factory=dict)

    def select(
        self,
        source: str,
        op: str,
        dtype: str,
        dims: Mapping[str, int],
        misaligned: frozenset[str],
        gapped: frozenset[str],
        target: str | None = None,
    ) -> Any:
        self.asked.append((source, op, dtype, dims, misaligned))
        known = [s for s in self.specs if (s.source, s.op, s.dtype) == (source, op, dtype) and s.runs_on(target)]
        if (spec := next((s for s in known if s.unmet(dims, misaligned, gapped) is None), None)) is None:
            raise LaunchError(f"{source}/{op}: no entry fits")
        return SimpleNamespace(form=FORM, spec=spec)

    def fastest(self, among: Sequence[str], op: str, dtype: str, dims: Mapping[str, int], target: str | None) -> str:
        """`picks`: the source by op and number of rows; elsewhere the source of this module's entries."""
        del among, dtype, target
        return self.picks.get((op, next(iter(dims.values()))), "py")

    def entries_of(self, source: str, op: str, dtype: str) -> list[Any]:
        known = [s for s in self.specs if (s.source, s.op, s.dtype) == (source, op, dtype)]
        return [SimpleNamespace(form=FORM, spec=s) for s in known]

    def entry(self, symbol: str) -> Any:
        return SimpleNamespace(form=FORM, spec=next(s for s in self.specs if s.symbol == symbol))


@pytest.fixture
def cpu() -> CpuExecutor:
    return CpuExecutor()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def entries() -> Entries:
    matmul = {"constants": {"BM": 64, "BN": 32}, "grid": ("cdiv(M, BM)", "cdiv(N, BN)", "1")}
    return Entries(
        [
            EntrySpec("linear_fast_f32", "linear", "py", "f32", aligned=("x", "weight"), **matmul),
            EntrySpec("linear_f32", "linear", "py", "f32", **matmul),
            EntrySpec("linear_tf32", "linear", "py", "tf32", **matmul),
            EntrySpec("linear_residual_f32", "linear_residual", "py", "f32", **matmul),
            EntrySpec("layernorm_f32", "layernorm", "py", "f32", grid=("min(N, SMS)", "1", "1")),
            EntrySpec("embedding_f32", "embedding", "py", "f32", grid=("N", "1", "1")),
            EntrySpec("kv_append_f32", "kv_append", "py", "f32", grid=("B", "T", "H")),
        ]
    )
