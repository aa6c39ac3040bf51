"""A cell of the matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolchain.contract.op import cell_name
from toolchain.runtime import Executor

from .result import CellResult

CPU = "cpu"  # the target of a cell that the interpreter runs


@dataclass(frozen=True)
class Cell:
    """One combination of the matrix, `layernorm-mlir-bf16-sm_90`: an op or suite, source, dtype, and the target or CPU.
    `executor`: the name of what runs it, for its rows."""

    op: str
    source: str
    dtype: str
    target: str
    executor: str = field(default="", compare=False)

    @classmethod
    def on(cls, op: str, source: str, dtype: str, executor: Executor) -> Cell:
        """The cell that an executor runs."""
        return cls(op, source, dtype, executor.target or CPU, executor.name)

    @property
    def name(self) -> str:
        return cell_name(self.op, self.source, self.dtype, self.target)

    def __str__(self) -> str:
        return self.name

    def row(self, shape: str, **outcome: Any) -> CellResult:
        return CellResult(
            cell=self.name, source=self.source, op=self.op, dtype=self.dtype,
            target=self.target, executor=self.executor, shape=shape, **outcome,
        )  # fmt: skip
