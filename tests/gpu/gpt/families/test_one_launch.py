"""A step of GPT-2 as one launch beside the same step as many, on the sizes that it has an entry for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.ops.compare import benchmark_bound
from gpt.config import PRESETS
from gpt.families.one_launch import op_of
from gpt.graphs import Decode
from gpt.model import GPT, KVCache
from gpt.parameters.weights import quantized, random_weights
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Executor, Launcher

pytestmark = pytest.mark.needs("gpu")
TOKENS = np.random.default_rng(1).integers(0, 50257, (8, 301)).astype(np.int32)
STEPS = 8
LOGITS = ", logits"  # behind a kind whose logits are in 8 bits too
MEDIUM = "medium"  # in bf16; the others are of 124M


def _continued(
    model: GPT, positions: int, length: int, *, graph: bool, texts: int = 1
) -> tuple[list[Any], list[list[int]]]:  # fmt: skip
    """Logits in float64 and the likeliest tokens after each of some steps, behind so many tokens of each text, of which
    later ones forget some."""
    cache = KVCache(model, texts, positions)
    model.prefill(TOKENS[:texts, :length], cache)
    cache.lengths -= np.arange(texts) * (length // 10)
    steps = Decode(model, cache, graph=graph)
    logits, likeliest = list[Any](), list[list[int]]()
    for tokens in TOKENS[:texts, length : length + STEPS].T:
        steps.reset(tokens)
        steps.run()
        likeliest.append(steps.likeliest().tolist())
        logits.append(steps.logits.numpy().astype(np.float64))
    return logits, likeliest


@pytest.mark.parametrize(
    ("positions", "length", "kind", "texts", "cached"),
    [
        (1024, 290, MEDIUM, 1, ""),
        (1024, 290, "", 1, ""), (1024, 1, "", 1, ""), (100, 92, "", 1, ""), (1024, 290, "f8-weights", 1, ""),
        (1024, 290, "", 8, ""), (100, 92, "", 8, ""), (1024, 290, "f8-weights", 1, "f8"), (100, 92, "", 1, "f8"),
        (1024, 290, "f8-weights", 8, ""), (1024, 290, "", 3, ""), (1024, 2, "f8, logits", 1, ""),
        (1024, 2, "f8, logits", 1, "f8"), (1024, 2, "f8, logits", 8, ""),
    ],
)  # fmt: skip
def test_one_launch_gives_the_logits_of_many(
    cuda: Executor, bundle: Bundle, positions: int, length: int, kind: str, texts: int, cached: str
) -> None:
    """On a GPU without an entry for it, `fastest` takes many launches too. Few tokens where rows are rounded to 8 bits,
    which makes small differences large: of few rows none is."""
    preset = MEDIUM if kind == MEDIUM else "gpt2"
    kind, logits = kind.removeprefix(MEDIUM).removesuffix(LOGITS), kind.endswith(LOGITS)
    one, many, op = (
        Launcher(bundle, "fastest", cuda),
        Launcher(bundle, "mlir", cuda),
        op_of(texts, folded=not kind, quantized="f8E4M3FN" if kind else "", logits=logits, cache=cached),
    )
    has = bool(bundle.entries_of("cute", op, "bf16")) and cuda.target == "sm_90" and cuda.sms >= 132
    config, weights = PRESETS[preset], random_weights(PRESETS[preset], seed=0)
    if kind:
        config, weights = quantized(config, weights, kind, logits=logits)
    models = [GPT(config, weights, launcher, "bf16", cache=cached) for launcher in (one, many)]
    given, likeliest = _continued(models[0], positions, length, graph=True, texts=texts)
    wanted, _ = _continued(models[1], positions, length, graph=True, texts=texts)
    assert (op in one.borrowed_ops) is has and op not in many.borrowed_ops
    assert likeliest == [each.argmax(1).tolist() for each in given]
    for found, right in zip(given, wanted, strict=True):
        bound = benchmark_bound("one_launch_f8_logits" if logits else "one_launch", "bf16")
        assert np.abs(found - right).max() <= bound * np.abs(right).max()
    again, _ = _continued(models[0], positions, length, graph=False, texts=texts)
    assert all(np.array_equal(a, b) for a, b in zip(given, again, strict=True))
