"""The source `cute`: which entries it has, and what it makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels_cute import SOURCE
from kernels_cute.entries import KERNELS
from kernels_cute.products.epilogues import EPILOGUES
from kernels_cute.products.rms import RMS
from kernels_cute.products.scaled import SCALED
from kernels_cute.ranks.all_gather import ALL_GATHERED
from kernels_cute.ranks.gather import GATHERED
from kernels_cute.ranks.scatter import SCATTERED
from toolchain.contract.artifact import TensorMap
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.errors import SourceError

SPECS = {spec.symbol: spec for spec in SOURCE.entries()}


def test_every_op_ends_with_an_entry_for_any_alignment() -> None:
    """But for those that sm_90 alone has entries of: products of 8 bits or that norms are part of, and attention to a
    cache, which are borrowed elsewhere, products of several ranks, and what does several ops' work at once."""
    at_once = {name for name, op in ops().items() if op.whole}
    attends = {"grouped_decode_attention_f8", "decode_attention_unsplit"}
    alone = {*SCALED, *RMS, *SCATTERED, *GATHERED, *ALL_GATHERED, *attends, *at_once}
    ends: dict[tuple[str, str], EntrySpec] = {(spec.op, spec.dtype): spec for spec in SPECS.values()}
    assert {op for op, _ in ends} == {*EPILOGUES, *alone, "layernorm", "attention"}
    assert {spec.targets for spec in SPECS.values() if spec.op in alone} == {("sm_90",)}
    for spec in (spec for spec in ends.values() if spec.op not in alone):
        assert (spec.aligned, spec.contiguous, spec.multiples, spec.targets) == ((), (), {}, ()), spec.symbol
    assert {spec.kernel or spec.op for spec in SPECS.values()} == set(KERNELS), "a kernel without an entry"
    assert sum(not spec.targets for spec in SPECS.values()) <= 33, "each is traced and compiled for every target"


def test_an_entry_for_tma_says_which_maps_it_takes() -> None:
    spec = SPECS["linear_wgmma_bf16"]
    assert spec.targets == ("sm_90",)
    small = {"BM": 64, "BN": 64, "BK": 64, "STAGES": 2, "PARTS": 1, "APART": 0}
    artifact = SOURCE.artifact(replace(spec, constants=small))
    form = artifact.form
    assert form.maps == tuple(TensorMap(array, (64, 64), 128) for array in ("x", "weight", "out"))
    form.check_maps(spec)
    assert (form.block, form.waits, form.shared_bytes > 2 * 2 * 64 * 64 * 2) == ((256, 1, 1), True, True)
    text = artifact.payload.decode()
    assert ".target sm_90a" in text
    assert ".entry linear_wgmma_bf16(" in text
    assert text.count("griddepcontrol.wait") == 1
    assert "cute_nvgpu.arch.copy.tma_load" in artifact.ir.decode()  # what a CPU runs


def test_a_residual_comes_by_a_map_of_whole_parts() -> None:
    spec = SPECS["linear_residual_squares_wgmma_192_bf16"]
    artifact = SOURCE.artifact(spec)
    assert artifact.form.maps[2:] == (TensorMap("out", (128, 64), 128), TensorMap("residual", (128, 64), 128))
    artifact.form.check_maps(spec)


def test_an_entry_for_every_gpu_is_ptx_for_sm_80() -> None:
    artifact = SOURCE.artifact(SPECS["layernorm_whole_f16"])
    assert (artifact.form.kind, artifact.form.maps, artifact.form.waits) == ("ptx", (), False)
    assert (artifact.form.block, artifact.form.shared_bytes) == ((128, 1, 1), 0)
    assert ".target sm_80" in artifact.payload.decode()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kernel": "nothing"}, "no kernel 'nothing'.*one of mma_sync"),
        ({"dtype": "f32"}, "no product of f32"),
        ({"op": "gelu", "aligned": (), "multiples": {}, "where": (), "grid": ("1", "1", "1")}, "no epilogue for gelu"),
        ({"constants": {"BM": 128, "BN": 128}, "grid": ("1", "1", "1")}, "needs the constant 'BK'"),
        ({"constants": {**SPECS["linear_mma_bf16"].constants, "BK": 48}}, "48 along K has no swizzle"),
    ],
)
def test_an_entry_that_cannot_be_made_is_refused(changed: dict[str, object], why: str) -> None:
    wrong = replace(SPECS["linear_mma_bf16"], **changed)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SourceError, match=rf"(?s)kernels_cute: linear_mma_bf16: .*{why}"):
        SOURCE.artifact(wrong)


def test_the_fingerprint_is_of_the_entry() -> None:
    one, other = SPECS["linear_mma_bf16"], SPECS["linear_mma_f16"]
    assert SOURCE.fingerprint(one) == SOURCE.fingerprint(one) != SOURCE.fingerprint(other)
