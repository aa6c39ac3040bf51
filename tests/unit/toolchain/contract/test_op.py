"""What an op says of itself."""

from __future__ import annotations

import pytest

from toolchain.contract.op import OpSpec, ops
from toolchain.errors import UsageError


def test_an_op_names_arrays_that_are_read_early() -> None:
    assert ops()["linear"].pdl_reads == ("weight", "bias")
    assert ops()["gelu"].pdl_reads == ()
    params = ops()["layernorm"].params
    assert OpSpec("layernorm", params, "", False, ("weight",)).pdl_reads == ("weight",)
    for name in ("wait", "C", "eps"):  # no parameter, a dimension, a scalar
        with pytest.raises(UsageError, match=f"ops.toml: layernorm: pdl_reads names no array: {name}$"):
            OpSpec("layernorm", params, "", False, ("weight", name))


@pytest.mark.parametrize(
    ("op", "same"),
    [("decode_step_of_ranks", "LCVXNRQ"), ("linear_to_ranks", "NRMZQB"), ("rms_linear_of_ranks", "RMKZ")],
)
def test_ranks_have_what_they_share_in_the_same_sizes(op: str, same: str) -> None:
    """Heads, hidden units and what follows from them are a rank's own."""
    assert ops()[op].alike == set(same)


@pytest.mark.parametrize(
    ("op", "dtype", "own"),
    [
        ("linear", "tf32", "tf32"),
        ("layernorm", "tf32", "f32"),
        ("layernorm", "bf16", "bf16"),
        ("next_token", "bf16", "f32"),
    ],
)
def test_the_dtype_of_an_op_in_a_model(op: str, dtype: str, own: str) -> None:
    assert ops()[op].dtype_in(dtype) == own
