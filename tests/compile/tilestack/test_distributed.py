"""ts.distributed: products over ranks, on the interpreter. It checks each access to another rank's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest

import tilestack as ts
from tilestack.api.distributed import Split
from toolchain.errors import LaunchError, UsageError

pytestmark = pytest.mark.needs("toolchain")

CPU = ["cpu", "cpu", "cpu"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The entries that take any size, of one source."""
    from tilestack.__main__ import main

    folder = tmp_path_factory.mktemp("distributed")
    names = "^mlir/(matmul|matmul_reduce_scatter|all_gather_matmul)_any_(f32|bf16)$"
    words = ["compile", "--no-targets", "--jobs", "1", "--entries", names, "--output", str(folder / "b")]
    assert main(words) == 0
    return folder / "b"


def operands(dtype: Any, m: int = 7, k: int = 10, n: int = 11) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


@pytest.mark.parametrize("split", get_args(Split))
def test_every_split_is_the_product_of_sizes_that_do_not_divide(split: Split, compiled: Path) -> None:
    x, w = operands(np.float32)
    with ts.distributed.Product(w, split=split, devices=CPU, bundle=compiled) as product:
        for rows in (7, 1, 7):  # other rows take other buffers, and the same ones keep them
            made = product(x[:rows])
            assert made.shape == (rows, 11) and made.dtype == np.float32
            assert np.abs(made - x[:rows] @ w).max() < 1e-5


def test_a_sum_over_ranks_is_the_same_bits_in_every_run(compiled: Path) -> None:
    x, w = operands(ml_dtypes.bfloat16)
    first, second = (ts.distributed.matmul(x, w, split="k", devices=CPU, bundle=compiled) for _ in range(2))
    assert first.dtype == ml_dtypes.bfloat16 and first.tobytes() == second.tobytes()
    exact = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(first.astype(np.float64) - exact).max() < 3 * 2**-8 * np.abs(exact).max()


def test_what_does_not_fit_is_refused(compiled: Path) -> None:
    x, w = operands(np.float32)
    with pytest.raises(UsageError, match=r"no split 'rows'\n  next: one of m, n, k, mn"):
        ts.distributed.Product(w, split="rows")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="source 'cute'"):
        ts.distributed.Product(w, source="cute")
    with pytest.raises(UsageError, match="a weight of float64"):
        ts.distributed.Product(w.astype(np.float64))
    with pytest.raises(UsageError, match=r"weight has the shape \[10\]"):
        ts.distributed.Product(w[:, 0])
    with pytest.raises(UsageError, match="peers are at least 2"):
        ts.distributed.Product(w, devices=["cpu"])
    with ts.distributed.Product(w, devices=CPU, bundle=compiled) as product:
        with pytest.raises(LaunchError, match=r"x is float32\[7, 9\], the weight float32\[10, 11\]"):
            product(x[:, 1:])
        assert product(x[:0]).shape == (0, 11)
