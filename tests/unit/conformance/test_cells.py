"""Which cells there are where a source borrows: of its own ops alone."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cells import borrowed_by, borrows_from, has_cell, sources_of
from toolchain.bundles.bundle import Bundle


class Entries:
    """The part of a bundle that says what it has: linear in bf16 of both sources, gelu of one."""

    HAVE = (("mlir", "linear"), ("cute", "linear"), ("mlir", "gelu"))

    def entries_of(self, source: str, op: str, dtype: str) -> list[str]:
        return [op] * (dtype == "bf16" and (source, op) in self.HAVE)

    @property
    def entries(self) -> list[Any]:
        class Spec:
            def __init__(self, source: str) -> None:
                self.spec = self
                self.source, self.dtype = source, "bf16"

        return [Spec(source) for source, _ in self.HAVE]


@pytest.fixture
def bundle() -> Bundle:
    made: Any = Entries()
    return made


def test_a_source_that_borrows_has_cells_of_its_own_ops(bundle: Bundle) -> None:
    assert (borrows_from("cute"), borrows_from("py"), borrows_from("unknown")) == ("mlir", "", "")
    assert sources_of(bundle, "linear", "bf16", ["mlir", "cute"]) == ["mlir", "cute"]
    assert sources_of(bundle, "gelu", "bf16", ["mlir", "cute"]) == ["mlir"]
    assert sources_of(bundle, "linear", "f32", ["mlir", "cute"]) == ["mlir"]


def test_a_source_that_has_to_have_every_op_keeps_its_cell(bundle: Bundle) -> None:
    assert has_cell(bundle, "py", "gelu", "bf16"), "so that its absence is an error"


def test_a_model_has_a_cell_in_the_dtypes_of_a_source(bundle: Bundle) -> None:
    assert sources_of(bundle, "forward", "bf16", ["mlir", "cute"]) == ["mlir", "cute"]
    assert sources_of(bundle, "forward", "tf32", ["mlir", "cute"]) == ["mlir"]


def test_loans_are_said_in_words() -> None:
    assert borrowed_by(["mlir", "cute"]) == "cute takes ops that it lacks from mlir"
    assert borrowed_by(["mlir", "py"]) == ""


def test_nobody_needs_a_whole_step(bundle: Bundle) -> None:
    assert not has_cell(bundle, "mlir", "decode_step", "bf16")
    assert has_cell(bundle, "mlir", "softmax", "bf16")  # which it lacks: its cell says so
