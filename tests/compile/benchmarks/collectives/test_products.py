"""How fused products are compared with their parts, with two ranks on the interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.collectives import products
from benchmarks.collectives.products import ProductRow, Size, hidden
from toolchain.bundles.bundle import Bundle
from toolchain.runtime.peers import Peers, open_peers

SMALL = Size(8, 8, 8)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peers]:
    for name, value in (("LAUNCHES", 2), ("SAMPLES", 1), ("WARM_UP", 0), ("PERIOD", 101), ("ROWS", 2)):
        monkeypatch.setattr(products, name, value)
    with open_peers(["cpu", "cpu"]) as opened:
        yield opened


def test_both_products_have_rows_of_all_their_parts(bundle: Bundle, peers: Peers) -> None:
    rows = products.measure([bundle], peers, "py", sizes=[SMALL], say=lambda _: None)
    assert [(row.op, row.what) for row in rows] == [
        ("matmul_reduce_scatter", what) for what in ("matmul", "reduce_scatter", "matmul_reduce_scatter", "in turn")
    ] + [("all_gather_matmul", what) for what in ("matmul", "all_gather", "all_gather_matmul", "in turn")]
    assert all(row.us > 0 and not row.error for row in rows)


def test_a_wrong_product_is_not_timed(bundle: Bundle, peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "RELATIVE", 0.0)
    rows = products.measure([bundle], peers, "py", sizes=[SMALL], say=lambda _: None)
    wrong = [row for row in rows if row.error]
    assert {row.what for row in wrong} == {"matmul_reduce_scatter", "all_gather_matmul"}
    assert all("of the largest element" in row.error and row.us == 0 for row in wrong)


def test_what_is_hidden_is_of_the_fastest_of_each() -> None:
    op, size = "matmul_reduce_scatter", str(SMALL)
    rows = [
        ProductRow(op, size, "matmul", "slow", 120.0), ProductRow(op, size, "matmul", "fast", 100.0),
        ProductRow(op, size, "reduce_scatter", "one", 50.0), ProductRow(op, size, op, "wrong", error="off"),
        ProductRow(op, size, op, "one", 110.0),
    ]  # fmt: skip
    assert hidden(rows, op, size) == pytest.approx(0.8)
