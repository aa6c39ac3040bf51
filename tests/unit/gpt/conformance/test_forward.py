"""Rows of the forward pass: those of a source that borrows say what it borrowed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from conformance.results.result import CellResult
from gpt.conformance.forward import with_borrowed_ops
from toolchain.runtime.executor import Loaded

OPS = {
    "attention_fast": "attention",
    "attention_any": "attention",
    "embedding_any": "embedding",
    "linear_any": "linear",
}


def site(*ran: tuple[str, str]) -> Any:
    find = lambda _, symbol: SimpleNamespace(spec=SimpleNamespace(op=OPS[symbol]))  # noqa: E731
    executor = SimpleNamespace(ran={Loaded(source, symbol, "sm_90", "") for source, symbol in ran})
    return SimpleNamespace(bundle=SimpleNamespace(find=find), executor=executor)


def row(**more: str) -> CellResult:
    return CellResult(
        "forward-cute-bf16-sm_90", "cute", "forward", "bf16", "sm_90", "cuda:0", "nano B=1 T=1", "passed", **more
    )


def test_a_row_names_the_ops_of_another_sources_kernels() -> None:
    here = site(
        ("cute", "linear_any"), ("mlir", "embedding_any"), ("mlir", "attention_any"), ("mlir", "attention_fast")
    )
    assert with_borrowed_ops(row(), here).detail == "borrowed from mlir: attention, embedding"
    assert with_borrowed_ops(row(detail="off"), here).detail == "off; borrowed from mlir: attention, embedding"


def test_a_row_of_its_own_kernels_stays_as_it_is() -> None:
    assert with_borrowed_ops(row(), site(("cute", "linear_any"))) == row()
