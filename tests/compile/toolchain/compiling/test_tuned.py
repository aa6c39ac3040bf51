"""Entries that one source's measurements chose, compiled from the other source."""

from __future__ import annotations

import pytest

import kernels_mlir
import kernels_py
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import inspect_all
from toolchain.compiling.pipeline import compile_entries
from toolchain.contract.targets import select
from toolchain.knobs import cache_dir

pytestmark = pytest.mark.needs("toolchain")
# Llama's products are written for sm_90 and not tuned yet: six of their entries spill or wait.
UNTUNED = ("matmul", "matmul_residual", "swiglu", "rms_swiglu", "grouped_attention")


@pytest.mark.long("compiles every product tuned in bf16, of both sources")
def test_no_tuned_product_waits_for_the_one_before_or_spills() -> None:
    """The kernels of the two sources differ in small things, and those decide whether ptxas serialises the products and
    how many registers they take: a tuned entry that is fast in one source may be slow in the other. In bf16, which is
    what is tuned."""
    sources = {"kernels_mlir": kernels_mlir.SOURCE, "kernels_py": kernels_py.SOURCE}
    tuned = [
        (module, spec)
        for module, source in sources.items()
        for spec in source.entries()
        if spec.targets == ("sm_90",) and spec.dtype == "bf16" and spec.op_spec.products
        if spec.op not in UNTUNED
    ]
    assert len(tuned) > 40
    cache = Cache(cache_dir())  # by content: what did not change is not compiled or disassembled again
    made = compile_entries(tuned, select(["sm_90"]), cache, jobs=2)
    assert not made.failures
    cubins = [entry.cubins["sm_90"] for entry in made.compiled]
    usages = [usage for found in inspect_all(cubins, cache, jobs=2) for usage in found]
    assert [usage.symbol for usage in usages if usage.serialised] == []
    assert [usage.symbol for usage in usages if usage.spills] == []
