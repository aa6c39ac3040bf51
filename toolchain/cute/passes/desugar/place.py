"""A builder whose operations have the place of the one that they stand for."""

from __future__ import annotations

from typing import TypeVar

from xdsl.builder import Builder
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

Op = TypeVar("Op", bound=Operation)


class Placed:
    """Inserts at a point. `origin`: the operation that they stand for."""

    def __init__(self, origin: Operation, point: InsertPoint) -> None:
        self.origin, self._builder = origin, Builder(point)

    def insert(self, op: Op) -> Op:
        """Inserts an operation and returns it."""
        op.location = self.origin.location
        return self._builder.insert(op)
