"""The table of kernels that the benchmarks of source `cute` compile."""

from __future__ import annotations

from benchmarks.cute import TARGET
from benchmarks.cute.kernels import SOURCE, TABLE
from toolchain.contract.entries import load_table

SIZES = {"R": 2, "Q": 4096, "M": 8192, "N": 768, "K": 768, "B": 8, "T": 1024, "S": 1024, "H": 12, "D": 64}


def test_every_entry_is_for_the_target_and_has_a_grid() -> None:
    specs = list(load_table(TABLE).entries(SOURCE))
    assert len({spec.symbol for spec in specs}) == len(specs) == 201
    assert {spec.op for spec in specs} == {
        "linear", "rms_linear", "rms_linear_gelu", "linear_residual", "linear_residual_squares", "linear_f8",
        "linear_gelu_f8", "linear_gelu_f8_to_f8", "linear_residual_f8", "attention", "decode_step",
        "decode_step_texts", "decode_step_weight_f8", "decode_step_weight_f8_logits", "decode_step_cache_f8",
        "decode_step_weight_f8_cache_f8", "decode_step_weight_f8_logits_cache_f8", "decode_step_texts_weight_f8",
        "decode_step_texts_weight_f8_logits", "decode_step_of_ranks", "linear_of_own_rows", "linear_to_ranks",
        "rms_linear_of_ranks", "rms_linear_gelu_of_ranks",
    }  # fmt: skip
    for spec in specs:
        x, y, z = spec.grid_for(SIZES, 132)
        assert spec.targets == (TARGET,) and x > 0 and (y, z) == (1, 1)
        assert x % 2 == 0 or "paired" not in spec.symbol, "blocks of a pair run together"
