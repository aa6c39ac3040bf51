from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases.roofline import Ceilings, Work, decode_work, forward_work, op_work, parameters, visible
from gpt.config import LLAMAS, PRESETS
from gpt.parameters.weights import random_weights

GPT2 = PRESETS["gpt2"]
SMOLLM2 = LLAMAS["smollm2"]


def test_the_floor_is_the_larger_of_both() -> None:
    rates = Ceilings(bytes_per_s=4e12, flops_per_s=800e12)
    assert rates.floor_ms(Work(nbytes=4 * 10**9, flops=10**9)) == 1
    assert rates.floor_ms(Work(nbytes=8, flops=1600 * 10**9)) == 2
    assert rates.bound(Work(nbytes=8, flops=1600 * 10**9)) == "compute"
    assert rates.bound(Work(nbytes=8)) == "memory"


@pytest.mark.parametrize(
    ("op", "dims", "nbytes", "flops"),
    [
        ("linear", {"M": 8, "K": 16, "N": 32}, 2 * (8 * 16 + 16 * 32 + 32 + 8 * 32), 2 * 8 * 16 * 32),
        ("linear_residual", {"M": 8, "K": 16, "N": 32}, 2 * (8 * 16 + 16 * 32 + 32 + 2 * 8 * 32), 2 * 8 * 16 * 32),
        ("logits", {"M": 8, "C": 16, "V": 32}, 2 * (8 * 16 + 32 * 16 + 8 * 32), 2 * 8 * 16 * 32),
        ("gelu", {"M": 8, "N": 16}, 2 * 2 * 8 * 16, 0),
        # of the tables only the rows that are looked up; the tokens and positions are 4 bytes each
        ("embedding", {"N": 8, "V": 1000, "P": 4, "C": 16}, 2 * 4 * 8 + 2 * 16 * (8 + 4 + 8), 0),
        ("attention", {"B": 2, "T": 4, "S": 4, "H": 3, "D": 32}, 2 * 4 * 2 * 4 * 3 * 32, 4 * 2 * 3 * 32 * 10),
        ("decode_attention", {"B": 2, "P": 9, "H": 3, "D": 32}, 2 * 2 * 3 * 32 * (2 * 9 + 4), 4 * 2 * 3 * 32 * 9),
    ],
)
def test_the_work_of_ops(op: str, dims: dict[str, int], nbytes: int, flops: int) -> None:
    assert op_work(op, "bf16", dims) == Work(nbytes, flops)


def test_f32_has_twice_the_bytes() -> None:
    dims = {"M": 8, "N": 16}
    assert op_work("gelu", "f32", dims).nbytes == 2 * op_work("gelu", "bf16", dims).nbytes


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 8), (1, 7)])
def test_visible_counts_the_mask(queries: int, keys: int) -> None:
    mask = np.arange(keys) <= np.arange(queries)[:, None] + (keys - queries)
    assert visible(queries, keys) == mask.sum()


def test_parameters_are_those_of_the_weights() -> None:
    config = PRESETS["nano"]
    assert parameters(config) == sum(w.size for w in random_weights(config, 0).values())
    assert parameters(GPT2) == 124_439_808


def test_a_forward_counts_its_weights_and_logits_once() -> None:
    work = forward_work(GPT2, 1, 1024, "bf16")
    assert work.nbytes == 2 * (124_439_808 + 1024 * 50257) + 4 * 1024
    per_token = 2 * (12 * 12 * 768**2 + 768 * 50257)
    assert work.flops == 1024 * per_token + 12 * 4 * 768 * (1024 * 1025 // 2)


def test_a_decode_step_reads_its_cache() -> None:
    one, eight = (decode_work(GPT2, b, 1024, "bf16") for b in (1, 8))
    cache = 12 * 2 * 1024 * 768 * 2  # bytes of a sequence
    assert eight.nbytes - one.nbytes == pytest.approx(7 * (cache + 2 * (50257 + 768) + 8))
    # At 4.2 TB/s, what was found by hand for a step over 1024 positions.
    floors = [Ceilings(4.2e12, 7.8e14).floor_ms(decode_work(GPT2, b, 1024, "bf16")) for b in (1, 8, 64)]
    assert floors == pytest.approx([0.068, 0.131, 0.636], rel=0.01)


def test_the_work_of_a_llama() -> None:
    """Its three heads of keys and values, its three products of the MLP, and no table of positions."""
    assert parameters(SMOLLM2) == 134_515_008
    layer = 576 * 576 * 2 + 576 * 192 * 2 + 3 * 576 * 1536
    work = forward_work(SMOLLM2, 2, 1024, "bf16")
    assert work.nbytes == 2 * (134_515_008 + 2048 * 49152) + 4 * 2048
    assert work.flops == 2 * 2048 * (30 * layer + 576 * 49152) + 30 * 2 * 4 * 576 * (1024 * 1025 // 2)
    step = decode_work(SMOLLM2, 8, 8000, "bf16")
    assert step.nbytes == 2 * (134_515_008 + 30 * 2 * 8 * 8000 * 192 + 8 * 49152) + 4 * 2 * 8
    assert step.flops == 2 * 8 * (30 * layer + 576 * 49152) + 30 * 4 * 8 * 576 * 8000


def test_of_an_embedding_that_is_not_the_output_weights_only_rows_are_read() -> None:
    tied, untied = (decode_work(replace(SMOLLM2, tied=tied), 8, 64, "bf16") for tied in (True, False))
    assert untied.nbytes - tied.nbytes == 2 * 8 * 576
    assert untied.flops == tied.flops
