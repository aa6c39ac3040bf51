"""The kernels that `compile` selects. Nothing is compiled here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from gpt.config import GPTConfig
from gpt.launches import DryExecutor, DryPeers, continue_texts, forward_passes, launched, on_ranks
from gpt.parallel import ParallelGPT
from gpt.parameters import one_by_one, weights
from gpt.parameters.spread import OPS
from tilestack.api.bundles.selection import Selection, by_default, entries_used, everything, for_targets, with_borrowed
from toolchain.contract.entries import Tables
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.contract.sources import load_source, packages
from toolchain.contract.targets import select
from toolchain.runtime import Launcher

LLAMA: dict[str, Any] = {"family": "llama", "norm": "rmsnorm", "positions": "rope", "activation": "swiglu",
                         "biases": False, "kv_heads": 2, "ffn": 512}  # fmt: skip
FOLDED = {"embedding_centred", "linear_residual_squares", "rms_linear", "rms_linear_gelu"}
ENTRIES = [(package, spec) for package in packages().values() for spec in load_source(package).entries()]
DEFAULT = select([])


@pytest.fixture(scope="module")
def without_gpu() -> Selection:
    return by_default(ENTRIES, DEFAULT, [])


def cells(selection: Selection, target: str) -> list[EntrySpec]:
    (chosen,) = select([target])
    return [s for _, s in selection.entries if s.runs_on(target) and selection.wants(s, chosen)]


def test_without_a_gpu_every_portable_entry_is_there_for_the_interpreter(without_gpu: Selection) -> None:
    assert list(without_gpu.entries) == [(package, spec) for package, spec in ENTRIES if not spec.targets]


def test_without_a_gpu_each_target_has_what_the_shipped_model_launches(without_gpu: Selection) -> None:
    for target in DEFAULT:
        found = cells(without_gpu, target.name)
        assert {spec.source for spec in found} == set(packages())
        assert {spec.dtype for spec in found} == {"f32", "tf32", "f16", "bf16"}
        launched = {spec.op for spec in found}
        assert {"embedding", "linear", "attention", "logits", "next_token"} <= launched
        assert not launched & {"gelu", "softmax"}, "no model launches these by themselves"
        assert not launched & FOLDED, "norms are part of the products only with sm_90's own table"


def test_what_is_left_out_is_said_with_its_reason(without_gpu: Selection) -> None:
    entries = sum(bool(spec.targets) for _, spec in ENTRIES)
    (alone,) = [count for reason, count in without_gpu.skipped.items() if reason.startswith("entries for")]
    assert alone == entries > 0
    for target in DEFAULT:
        (left_out,) = [count for reason, count in without_gpu.skipped.items() if f"cubins for {target.name} " in reason]
        assert left_out + len(cells(without_gpu, target.name)) == len(without_gpu.entries)


def test_on_a_gpu_all_of_its_own_target_is_compiled(without_gpu: Selection) -> None:
    found = by_default(ENTRIES, DEFAULT, ["sm_90"])
    assert cells(found, "sm_90") == [spec for _, spec in ENTRIES if spec.runs_on("sm_90")]
    assert cells(found, "sm_80") == cells(without_gpu, "sm_80")


def test_a_named_target_gets_its_whole_table() -> None:
    (target,) = select(["sm_120"])
    found = for_targets(ENTRIES, [target])
    assert cells(found, "sm_120") == [spec for _, spec in ENTRIES if spec.runs_on("sm_120")]
    assert sum(found.skipped.values()) == len(ENTRIES) - len(found.entries)
    assert everything(ENTRIES).skipped == {}


@pytest.mark.parametrize("target", [None, "sm_90", "sm_80"])
def test_a_text_takes_few_entries(target: str | None) -> None:
    config, tensors, _ = weights.load(weights.SHIPPED)
    found = entries_used("mlir", target, 132, config, tensors, "bf16", [continue_texts([4, 9], 40)])
    assert 10 <= len(found) <= 40
    assert {spec.dtype for spec in found} <= {"bf16", "f32"}
    assert all(spec.runs_on(target) for spec in found)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("target", [None, "sm_90"])
def test_a_bundle_of_what_a_model_takes_is_enough_for_it(family: str, dtype: str, target: str | None) -> None:
    """The bundle may have another policy than all entries together: what a model launches depends on it. This model is
    as wide as those whose norms become part of products."""
    config = GPTConfig(2, 4, 256, 64, 64, **(LLAMA if family == "llama" else {}))
    tensors, text = weights.random_weights(config, 0), continue_texts([9], 40)
    found = entries_used("fastest", target, 132, config, tensors, dtype, [text])
    assert launched(found, config, tensors, dtype, DryExecutor(target, 132), text, source="fastest")
    assert target or not any(spec.targets for spec in found), "the interpreter takes the portable entries"


@pytest.mark.parametrize("stored", ["f32", "bf16"])
def test_a_checkpoint_on_one_gpu_is_folded(stored: str, tmp_path: Path) -> None:
    config = GPTConfig(2, 4, 256, 256, 64)
    weights.save(tmp_path, config, weights.random_weights(config, 0).astype(stored))
    _, tensors, _ = weights.load(tmp_path, "bf16")
    found = entries_used("fastest", "sm_90", 132, config, tensors, "bf16", [forward_passes((16, 256))])
    assert {spec.op for spec in found} >= FOLDED


@pytest.mark.parametrize("source", ["fastest", "cute"])
@pytest.mark.parametrize(("layers", "sizes"), [(2, (8, 1024)), (1, (8, 1024)), (2, (1, 1024)), (2, (1, 960))])
def test_a_bundle_of_what_ranks_take_shares_out_rows_of_a_checkpoint_too(
    source: str, layers: int, sizes: tuple[int, int], tmp_path: Path
) -> None:
    """A pass of 8192 rows takes products that are for such passes alone, and five heads are two and three. Behind the
    last layer no rank sends another parts of its sums. 960 rows are not shared out."""
    config, use, spread = GPTConfig(layers, 5, 320, 1024, 64), forward_passes(sizes), sizes != (1, 960)
    weights.save(tmp_path, config, weights.random_weights(config, 0))
    _, stored, _ = one_by_one.load(tmp_path)

    def on_two(config: GPTConfig, tensors: weights.Weights, launcher: Launcher, dtype: str) -> ParallelGPT:
        peers = DryPeers(cast("DryExecutor", launcher.executor), 2)
        borrows = launcher.borrows_from
        launchers = [Launcher(launcher.bundle, source, each, borrows_from=borrows) for each in peers.executors]
        return ParallelGPT(config, tensors, launchers, peers, dtype)

    found = entries_used(source, "sm_90", 132, config, stored, "bf16", [use], on_ranks(2))
    again = launched(found, config, stored, "bf16", DryExecutor("sm_90", 132), use, on_two, source)
    assert {spec.symbol for spec in again} == {spec.symbol for spec in found}
    assert {spec.op for spec in found} & {*OPS} == ({*OPS[: 3 + layers]} if spread else set())
    assert not spread or "embedding_centred" in {spec.op for spec in found}


def test_a_source_with_few_ops_brings_those_that_its_model_borrows() -> None:
    config, tensors, _ = weights.load(weights.SHIPPED)
    found = entries_used("cute", "sm_90", 132, config, tensors, "bf16", [continue_texts([4, 9], 40)])
    ops = {source: {spec.op for spec in found if spec.source == source} for source in ("cute", "mlir")}
    assert {"layernorm", "linear", "linear_gelu", "logits"} <= ops["cute"]
    assert {"embedding", "kv_append", "next_token"} <= ops["mlir"]
    assert not ops["mlir"] & (ops["cute"] | FOLDED)
    assert {spec.source for spec in with_borrowed("kernels_py")} == {"py"}


def test_the_fastest_source_brings_the_entries_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    picks = [Pick("logits", "all", ("bf16",), "cute", (), {})]
    monkeypatch.setattr(Tables, "picks", {"sm_90": picks})
    config, tensors, _ = weights.load(weights.SHIPPED)
    for target, sources in (("sm_90", {"cute", "mlir"}), ("sm_80", {"mlir"}), (None, {"mlir"})):
        found = entries_used("fastest", target, 132, config, tensors, "bf16", [continue_texts([4, 9], 40)])
        assert {spec.source for spec in found} == sources
        assert {spec.op for spec in found if spec.source == "cute"} == ({"logits"} if "cute" in sources else set())
