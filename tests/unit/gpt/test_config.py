from dataclasses import replace

import pytest

from gpt.config import LLAMAS, PRESETS, GPTConfig, llama
from toolchain.errors import UsageError


def test_gpt2_follows_from_its_width_and_heads():
    config = PRESETS["gpt2"]
    assert (config.kv_heads, config.head_size, config.ffn, config.group) == (12, 64, 3072, 1)
    assert (config.family, config.norm, config.positions, config.activation) == ("gpt2", "layernorm", "learned", "gelu")
    assert config.biases and config.tied


def test_smollm2_shares_keys_among_three_heads():
    config = LLAMAS["smollm2"]
    assert (config.kv_heads, config.head_size, config.ffn, config.group) == (3, 64, 1536, 3)


def test_head_size_of_a_llama_need_not_follow_from_its_width():
    """Qwen3-0.6B: 16 heads of 128 in a width of 1024."""
    assert llama(28, 16, 1024, 40960, 151936, kv_heads=8, head_size=128, ffn=3072, qk_norm=True).head_size == 128


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"biases": False}, "biases is False; models of the family gpt2 have True"),
        ({"family": "llama"}, "norm is 'layernorm'; models of the family llama have 'rmsnorm'"),
        ({"family": "mamba"}, "no family 'mamba'"),
    ],
)
def test_gpt2_refuses_what_it_does_not_compute(fields: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        replace(PRESETS["nano"], **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kv_heads": 4}, "n_head 6 is not a multiple of kv_heads 4"),
        ({"kv_heads": -1}, "kv_heads is -1"),
        ({"head_size": 48}, "head_size is 48"),
        ({"ffn": 2**31}, "ffn is 2147483648"),
        ({"rope_base": 0.0}, "rope_base is 0.0"),
        ({"activation": "gelu"}, "activation is 'gelu'"),
    ],
)
def test_llama_refuses_what_it_does_not_compute(fields: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        replace(LLAMAS["nano"], **fields)


@pytest.mark.parametrize("divisors", [(1.0,) * 15, (1.0,) * 15 + (0.0,), (float("inf"),) * 16, (float("nan"),) * 16])
def test_scaling_that_makes_no_sense(divisors: tuple[float, ...]):
    assert replace(LLAMAS["nano"], rope_scaling=(2.0,) * 16).rope_scaling == (2.0,) * 16
    with pytest.raises(UsageError, match="rope_scaling is 16 numbers above 0"):
        replace(LLAMAS["nano"], rope_scaling=divisors)


def test_a_wider_gpt2_gets_its_own_sizes():
    config = replace(PRESETS["gpt2"], n_embd=384, n_head=6)
    assert (config.kv_heads, config.head_size, config.ffn) == (6, 64, 1536)


def test_sizes_are_positional_as_before():
    assert GPTConfig(2, 2, 64, 1024, 257).n_ctx == 1024
