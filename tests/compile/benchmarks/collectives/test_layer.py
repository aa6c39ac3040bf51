"""The launches of a layer on the executor of CuTe, with two ranks: checked, then timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from benchmarks.collectives import layer, layers
from benchmarks.collectives.layer import LayerRow, measure
from benchmarks.collectives.layers import ENDS, LAUNCHES
from gpt.config import GPTConfig
from gpt.parameters.spread import OPS
from kernels_cute import SOURCE
from tests.compile.conftest import LazyBundle
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.errors import UsageError
from toolchain.knobs import cache_dir
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.peers import open_peers

CONFIG = GPTConfig(n_layer=2, n_head=3, n_embd=192, n_ctx=128, vocab_size=67)


@pytest.fixture(scope="module")
def spreading(bundle: Bundle) -> Bundle:
    """With the products of ranks, whose IR the executor runs."""
    entries, make, cache = list(bundle.entries), dict(cast("LazyBundle", bundle).make), Cache(cache_dir())
    for spec in SOURCE.entries():
        if spec.op in OPS and spec.dtype == "bf16":
            made = pipeline.exported("kernels_cute", spec, cache)
            file = FileRef(Path("cute", spec.symbol), spec.symbol)
            make[file.path] = lambda text=made.ir: text
            entries.append(BundleEntry(spec, file, made.form, {}, ir=file))
    return replace(cast("LazyBundle", bundle), entries=tuple(entries), make=make)


def nothing_else(*_: object) -> list[object]:
    """No other entries."""
    return []


@pytest.mark.long("a minute; the launches themselves are tested with the kernels")
def test_launches_are_checked_and_timed(spreading: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (layer, layers):
        monkeypatch.setattr(module, "LAYERS", 1)
    for name, value in (("SAMPLES", 1), ("WARM_UP", 0), ("SAMPLE_US", 0.0)):
        monkeypatch.setattr(layer, name, value)
    monkeypatch.setattr("benchmarks.collectives.layers.Layers.entries", nothing_else)
    found: list[LayerRow] = []
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        for executor in peers.executors:
            cast("CpuExecutor", executor).by_threads = True
        with pytest.raises(UsageError, match="200 rows cannot be shared out"):
            measure(CONFIG, [spreading], "cute", "mlir", peers, [200], found.append)
        measure(CONFIG, [spreading], "cute", "mlir", peers, [256], found.append)
    assert not [row for row in found if row.error] and all(row.us > 0 for row in found)
    named = [(row.what, row.launch) for row in found]
    assert named[:9] == [("alone", name) for name in (*LAUNCHES, *ENDS)]
    assert named[9:] == [
        *(("up to", name) for name in LAUNCHES[:-1]), ("layer", ""), ("layer", ""), ("layer, others send", "")
    ]  # fmt: skip


def test_a_result_that_is_off_has_no_time(spreading: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "RELATIVE", 0.0)
    made: list[LayerRow] = []

    def first_alone(row: LayerRow) -> None:
        made.append(row)
        raise InterruptedError

    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        for executor in peers.executors:
            cast("CpuExecutor", executor).by_threads = True
        with pytest.raises(InterruptedError):
            measure(CONFIG, [spreading], "cute", "mlir", peers, [256], first_alone)
    assert "off by" in made[0].error and made[0].us == 0.0
