"""Rows of the forward pass: those of a source that borrows say what it borrowed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from conformance.results.result import CellResult
from gpt.config import preset
from gpt.conformance.forward import check_logits, with_borrowed_ops
from gpt.launches import DryExecutor
from gpt.model import GPT
from gpt.parameters.weights import random_weights
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import committed
from toolchain.contract.sources import load_source, packages
from toolchain.runtime import Launcher
from toolchain.runtime.executor import Loaded
from toolchain.runtime.layout import NUMPY

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


class GPU(DryExecutor):
    """One that notes which kernels it prepares and launches, and whether that is inside its gate."""

    kind = "cuda"

    def __init__(self) -> None:
        super().__init__("sm_90", 132)
        self.told: list[str] = []
        self.held = False

    def prepare(self, *given: Any) -> Any:
        super().prepare(*given)
        self.told.append("prepare inside" if self.held else "prepare")
        return lambda arrays, scalars: self.told.append("launch" if self.held else "launch outside")  # noqa: ARG005

    @contextmanager
    def gate(self) -> Generator[None]:
        self.held = True
        yield
        self.held = False

    def record(self) -> Any:
        return SimpleNamespace(us_since=lambda _: 1.0)


def test_a_gpu_has_loaded_what_it_launches_behind_its_gate() -> None:
    gpu, config = GPU(), preset("nano")
    nothing = FileRef(Path(), "")
    specs = [spec for spec in load_source(packages()["mlir"]).entries() if spec.runs_on("sm_90")]
    entries = tuple(BundleEntry(spec, nothing, tile_ir(b"", "13.4").form, {}) for spec in specs)
    bundle = Bundle(Path(), entries, {}, committed().policies)
    model = GPT(config, random_weights(config, seed=7).astype("bf16"), Launcher(bundle, "mlir", gpu), "bf16")
    tokens, here = np.zeros((2, 3), np.int32), SimpleNamespace(executor=gpu, gate=gpu.gate())
    expected = np.zeros((2, 3, config.vocab_size)), np.zeros((2, 3, config.vocab_size), NUMPY["bf16"])
    check_logits(model, tokens, lambda: expected, "bf16", here)  # type: ignore[arg-type]
    loaded = gpu.told.count("prepare")
    assert loaded and set(gpu.told) == {"prepare", "launch"}
    assert gpu.told.index("launch") == loaded
