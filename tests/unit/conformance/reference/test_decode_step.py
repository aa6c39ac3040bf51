"""The step beside what it is made of, op by op."""

from __future__ import annotations

import numpy as np

from conformance.cases import Case
from conformance.ops.inputs import make_inputs
from conformance.reference import float64

SIZES = {"L": 2, "C": 128, "E": 384, "F": 512, "H": 2, "D": 64, "V": 24, "X": 16, "P": 9, "N": 1, "TWO": 2, "B": 8,
         "S": 1024, "W": 2, "G": 64, "U": 8}  # fmt: skip


def test_it_is_its_ops_one_by_one() -> None:
    inputs = make_inputs(Case("decode_step", SIZES, ""), "bf16", seed=4)
    a, cache = inputs.arrays, inputs.outputs["cache"]
    position = int(a["positions"][0])
    logits, after = float64.decode_step(**a, cache=cache, eps=1e-5, visible=24)
    ones = np.ones(128)
    x = float64.embedding(a["tokens"], a["positions"], a["wte"], a["wpe"])
    x = x - x.mean()
    for layer in range(2):
        w = {name: a[name][layer].astype(np.float64) for name in ("qkv", "proj", "fc", "out")}
        normed = float64.rmsnorm(x, ones, 1e-5)
        q, k, v = float64.linear(normed, w["qkv"].T, a["qkv_bias"][layer]).reshape(3, 1, 2, 64)
        before = (cache[layer, which].reshape(1, 9, 2, 64) for which in range(2))
        keys, values, mixed = float64.decode_attention_unsplit(q, k, v, a["positions"], *before, 0.125)
        for which, rows in enumerate((keys, values)):
            assert np.allclose(after[layer, which], rows.reshape(9, 128), equal_nan=True)
        projection = w["proj"].transpose(0, 2, 1).reshape(128, 128)
        x = float64.linear_residual(mixed.reshape(1, 128), projection, a["proj_bias"][layer], x)
        hidden = float64.linear_gelu(float64.rmsnorm(x, ones, 1e-5), w["fc"].T, a["fc_bias"][layer])
        x = float64.linear_residual(hidden, w["out"].transpose(0, 2, 1).reshape(512, 128), a["out_bias"][layer], x)
    last = float64.rmsnorm(x, a["norm_weight"], 1e-5) + a["norm_bias"].astype(np.float64)
    assert np.allclose(logits, last @ a["wte"].astype(np.float64).T)
    assert position == 4 and np.isnan(after[:, :, 5:].astype(np.float64)).all()


def test_several_texts_are_each_a_step_of_its_own() -> None:
    inputs = make_inputs(Case("decode_step_texts", SIZES | {"N": 3, "P": 16}, ""), "bf16", seed=5)
    a, caches = inputs.arrays, inputs.outputs["cache"]
    assert a["positions"].tolist() == [15, 7, 0]
    logits, after = float64.decode_step_texts(**a, cache=caches, eps=1e-5, visible=24)
    for n in range(3):
        own = {**a, "tokens": a["tokens"][n : n + 1], "positions": a["positions"][n : n + 1]}
        wanted = float64.decode_step(**own, cache=caches[:, :, n], eps=1e-5, visible=24)
        assert np.array_equal(logits[n], wanted[0][0])
        assert np.array_equal(after[:, :, n], wanted[1], equal_nan=True)


def test_ranks_that_share_a_model_make_its_step() -> None:
    """Both begin with the same cache."""
    more = {"R": 2, "E": 192, "F": 256, "H": 1, "A": 64, "G": 32, "K": 12, "Q": 8}
    inputs = make_inputs(Case("decode_step_of_ranks", SIZES | more, ""), "bf16", seed=6)
    a, cache = inputs.arrays, inputs.outputs["cache"]
    made = [float64.decode_step_of_ranks(**a, cache=cache, eps=1e-5, visible=9, rank=rank) for rank in range(2)]
    joined = {name: np.concatenate(list(a[name]), 1) for name in ("proj", "fc", "fc_bias", "out")}
    joined |= {
        name: np.concatenate([part for which in range(3) for part in a[name][:, :, which * 64 :][:, :, :64]], 1)
        for name in ("qkv", "qkv_bias")
    }
    whole = {name: array for name, array in {**a, **joined}.items() if name != "head"}
    logits, after = float64.decode_step(**whole, cache=np.concatenate([cache] * 2, 3), eps=1e-5, visible=24)
    assert np.array_equal(np.concatenate([cache_of for _, cache_of in made], 3), after, equal_nan=True)
    same = {**a, "head": np.stack([a["wte"][:12], a["wte"][12:]])}
    made = [float64.decode_step_of_ranks(**same, cache=cache, eps=1e-5, visible=9, rank=rank) for rank in range(2)]
    assert np.allclose(np.concatenate([own for own, _ in made], 1), logits)
