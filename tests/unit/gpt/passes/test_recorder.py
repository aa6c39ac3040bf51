"""The layout of a workspace follows from the launches of the passes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpt.config import GPTConfig, preset
from gpt.families.gpt2 import GPT2
from gpt.model import GPT, KVCache
from gpt.parameters.weights import Weights, random_weights
from gpt.passes.arena import Arena, Span, plan
from gpt.passes.recorder import Recorder
from gpt.passes.workspace import Shape, Workspace, buffers, nbytes
from gpt.reference import forward as reference
from toolchain.runtime import CpuExecutor

ROWS, WIDTH = 8, 64
SHAPES = buffers(GPTConfig(1, 2, WIDTH, 16, 257), "f32", 1, ROWS, ROWS, parts=0, squares=(0, 0))
ALL = ("x", "normed", "qkv", "attended", "hidden")


def meet(placed: Arena, shapes: dict[str, Shape], a: str, b: str) -> bool:
    first, second = placed.offsets[a], placed.offsets[b]
    return first < second + nbytes(shapes[b]) and second < first + nbytes(shapes[a])


def layout(*launches: tuple[str, str], passes: int = 1) -> Arena:
    """The layout for launches that each read all of one buffer and write all of another."""
    recorder = Recorder(CpuExecutor(), SHAPES)
    flat = {name: getattr(recorder.work, name).reshape(-1) for name in ALL}
    for _ in range(passes):
        with recorder.one_pass():
            for source, target in launches:
                recorder("gelu", "f32", x=flat[source], out=flat[target])
    return recorder.arena()


def test_another_order_is_another_layout() -> None:
    once = layout(("x", "qkv"), ("qkv", "normed"), ("normed", "hidden"), ("hidden", "normed"))
    assert meet(once, SHAPES, "qkv", "hidden")
    again = layout(("x", "qkv"), ("normed", "hidden"), ("qkv", "normed"), ("hidden", "normed"))
    assert not meet(again, SHAPES, "qkv", "hidden")
    assert again.nbytes > once.nbytes


def test_a_longer_pass_is_another_layout() -> None:
    before = (("x", "qkv"), ("qkv", "hidden"), ("x", "attended"), ("attended", "x"))
    assert meet(layout(*before), SHAPES, "attended", "hidden")
    assert not meet(layout(*before, ("hidden", "x")), SHAPES, "attended", "hidden")


def test_contents_matter_only_until_they_are_written_anew() -> None:
    """Between its last read and the next write, as from one layer to the next, a buffer's memory is free."""
    layer = (("x", "qkv"), ("qkv", "attended"), ("attended", "hidden"), ("hidden", "x"))
    one, three = layout(*layer), layout(*(3 * layer))
    assert meet(three, SHAPES, "qkv", "hidden")
    assert one.offsets == three.offsets


def test_what_the_host_gave_stays_for_the_next_replay() -> None:
    placed = layout(("x", "normed"), ("normed", "qkv"), ("qkv", "hidden"), ("hidden", "attended"))
    assert all(not meet(placed, SHAPES, "x", other) for other in ALL if other != "x")


def test_a_pass_of_its_own_starts_anew() -> None:
    """A pass never reads what an earlier pass left in a buffer, so the buffer's contents do not matter in between."""
    one, two = (layout(("x", "qkv"), ("qkv", "hidden"), ("hidden", "normed"), passes=n) for n in (1, 2))
    assert one.offsets == two.offsets


def test_a_part_that_is_written_leaves_the_rest() -> None:
    recorder = Recorder(CpuExecutor(), SHAPES)
    work = recorder.work
    x, hidden, normed = (getattr(work, name).reshape(-1) for name in ("x", "hidden", "normed"))
    with recorder.one_pass():
        recorder("gelu", "f32", x=x, out=work.qkv.reshape(-1))
        recorder("gelu", "f32", x=x, out=work.qkv.slice(0, 0, 1))
        recorder("gelu", "f32", x=x, out=hidden)
        recorder("gelu", "f32", x=hidden, out=normed)
        recorder("gelu", "f32", x=work.qkv.slice(0, 1, ROWS), out=normed)
    assert not meet(recorder.arena(), SHAPES, "qkv", "hidden")


def test_columns_that_are_written_leave_the_others() -> None:
    recorder = Recorder(CpuExecutor(), SHAPES)
    work = recorder.work
    with recorder.one_pass():
        recorder("gelu", "f32", x=work.x, out=work.qkv)
        recorder("gelu", "f32", x=work.x, out=work.hidden)
        recorder("gelu", "f32", x=work.x, out=work.qkv.slice(1, 0, WIDTH))
        recorder("gelu", "f32", x=work.qkv.slice(1, WIDTH, 2 * WIDTH), out=work.x)
    assert not meet(recorder.arena(), SHAPES, "qkv", "hidden")


def late_projection(self: GPT2, work: Workspace, attended: Any) -> bool:
    """A model whose MLP runs beside attention: attention's result is read after the hidden layer was computed."""
    x, normed, eps = work.x, work.normed, self._config.eps
    for layer in range(self._config.n_layer):
        w = self._layer_weights(layer)
        self.launch("layernorm", x=x, **w("ln_1"), out=normed, eps=eps)
        self.launch("linear", x=normed, **w("attn.c_attn"), out=work.qkv)
        y = attended(layer)
        self.launch("layernorm", x=x, **w("ln_2"), out=normed, eps=eps)
        self.launch("linear_gelu", x=normed, **w("mlp.c_fc"), out=work.hidden)
        self.launch("linear_residual", x=y, **w("attn.c_proj"), residual=x, out=x)
        self.launch("linear_residual", x=work.hidden, **w("mlp.c_proj"), residual=x, out=x)
    return False


def test_a_model_with_another_order_of_layers(
    config: GPTConfig, weights: Weights, launcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = np.random.default_rng(3).integers(0, config.vocab_size, (2, 20)).astype(np.int32)
    shapes = buffers(config, "f32", 2, 40, 40, parts=4, squares=(0, 0))
    usual = GPT(config, weights, launcher, "f32").layout(2, 20)
    assert meet(usual, shapes, "attended", "hidden")
    monkeypatch.setattr(GPT2, "_split", late_projection)  # the route of 40 rows
    model = GPT(config, weights, launcher, "f32")
    assert not meet(model.layout(2, 20), shapes, "attended", "hidden")
    wanted = late_reference(config, weights, tokens)
    assert np.abs(model.forward(tokens).numpy() - wanted).max() < 1e-5
    for held in ("forward", "prefill"):  # a second run finds what the first left
        logits = model.forward(tokens) if held == "forward" else model.prefill(tokens, KVCache(model, 2))
        last = logits.numpy() if held == "prefill" else logits.numpy()[:, -1]
        assert np.abs(last - wanted[:, -1]).max() < 1e-5


def late_reference(config: GPTConfig, weights: Weights, tokens: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The reference's forward pass with the same change."""
    ops, (batch, length), c = reference.float64_ops, tokens.shape, config.n_embd
    x = ops.embedding(tokens, np.arange(length), weights["wte.weight"], weights["wpe.weight"])
    for layer in range(config.n_layer):
        w = {n: (weights[f"h.{layer}.{n}.weight"], weights[f"h.{layer}.{n}.bias"]) for n in reference.LAYERS}
        qkv = ops.linear(ops.layernorm(x, *w["ln_1"], config.eps), *w["attn.c_attn"])
        q, k, v = np.moveaxis(qkv.reshape(batch, length, 3, config.n_head, config.head_size), 2, 0)
        y = ops.attention(q, k, v, config.head_size**-0.5).reshape(batch, length, c)
        hidden = ops.linear_gelu(ops.layernorm(x, *w["ln_2"], config.eps), *w["mlp.c_fc"])
        x = ops.linear_residual(hidden, *w["mlp.c_proj"], ops.linear_residual(y, *w["attn.c_proj"], x))
    x = ops.layernorm(x, weights["ln_f.weight"], weights["ln_f.bias"], config.eps)
    return ops.logits(x, weights["wte.weight"])


# The steps of a layer from a buffer's first write to its last read, as they were once numbered by hand.
BY_HAND = {
    "x": (0, 9), "normed": (1, 9), "qkv": (2, 3), "kv": (2, 4), "attended": (3, 4), "hidden": (6, 7), "tokens": (0, 9),
    "positions": (0, 9), "starts": (0, 9), "partial": (7, 8), "squares": (0, 9),
    "narrow": (0, 9), "wide": (0, 9), "scales": (0, 9), "ones": (0, 9),
    "widened": (0, 9),  # empty, as this model is not quantized
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("batch", "length"),
    [(1, 1), (8, 1), (64, 1), (1, 64), (1, 192), (2, 301), (1, 1024), (2, 1024), (8, 1024), (11, 1024), (64, 1024)],
)
def test_gpt2_needs_no_more_memory_than_by_hand(launcher: Any, dtype: str, batch: int, length: int) -> None:
    config = replace(preset("gpt2"), n_layer=2, vocab_size=257)
    model = GPT(config, random_weights(config, seed=5), launcher, dtype)
    shapes = model._buffers(batch, length)
    spans = {n: Span(nbytes(s), frozenset(range(BY_HAND[n][0], BY_HAND[n][1] + 1))) for n, s in shapes.items()}
    placed = model.layout(batch, length)
    assert placed.nbytes <= plan(spans).nbytes
    assert placed.nbytes >= max(math.prod(sizes) for sizes, _ in shapes.values())
