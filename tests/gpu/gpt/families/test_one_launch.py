"""A step of GPT-2 124M as one launch beside the same step as many, on the sizes that it has an entry for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.compare import benchmark_bound
from gpt.config import PRESETS
from gpt.families.one_launch import OP, OP_F8
from gpt.graphs import Decode
from gpt.model import GPT, KVCache
from gpt.parameters.weights import quantized, random_weights
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Executor, Launcher

pytestmark = pytest.mark.needs("gpu")
TOKENS = np.random.default_rng(1).integers(0, 50257, (1, 301)).astype(np.int32)
STEPS = 8


def _continued(model: GPT, positions: int, length: int, *, graph: bool) -> tuple[list[Any], list[int]]:
    """Logits in float64 and the likeliest token after each of some steps, behind so many tokens of a text."""
    cache = KVCache(model, 1, positions)
    model.prefill(TOKENS[:, :length], cache)
    steps = Decode(model, cache, graph=graph)
    logits, likeliest = list[Any](), list[int]()
    for token in TOKENS[0, length : length + STEPS]:
        steps.reset(np.array([token]))
        steps.run()
        likeliest += steps.likeliest().tolist()
        logits.append(steps.logits.numpy().astype(np.float64))
    return logits, likeliest


@pytest.mark.parametrize(
    ("positions", "length", "kind"), [(1024, 290, ""), (1024, 1, ""), (100, 92, ""), (1024, 290, "f8-weights")]
)
def test_one_launch_gives_the_logits_of_many(
    cuda: Executor, bundle: Bundle, positions: int, length: int, kind: str
) -> None:
    """On a GPU without an entry for it, `fastest` takes many launches too."""
    one, many, op = Launcher(bundle, "fastest", cuda), Launcher(bundle, "mlir", cuda), OP_F8 if kind else OP
    has = bool(bundle.entries_of("cute", op, "bf16")) and cuda.target == "sm_90" and cuda.sms >= 132
    config, weights = PRESETS["gpt2"], random_weights(PRESETS["gpt2"], seed=0)
    if kind:
        config, weights = quantized(config, weights, kind)
    models = [GPT(config, weights, launcher, "bf16") for launcher in (one, many)]
    given, likeliest = _continued(models[0], positions, length, graph=True)
    wanted, _ = _continued(models[1], positions, length, graph=True)
    assert (op in one.borrowed_ops) is has and op not in many.borrowed_ops
    assert likeliest == [int(logits[0].argmax()) for logits in given]
    for found, right in zip(given, wanted, strict=True):
        assert np.abs(found - right).max() <= benchmark_bound("one_launch", "bf16") * np.abs(right).max()
    again, _ = _continued(models[0], positions, length, graph=False)
    assert all(np.array_equal(a, b) for a, b in zip(given, again, strict=True))
