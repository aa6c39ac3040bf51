"""Train a GPT of your own in numpy, save it, and let the kernels continue a text with it.

    python examples/11_own_checkpoint.py

One layer learns a rhyme by heart, in seconds on a CPU. Its checkpoint has Hugging Face's names and layout, so any
GPT-2 that was trained elsewhere is loaded in the same way. A step is: forward, each function with the gradient that it
will need, then backward in reverse order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilestack as ts
from gpt.config import GPTConfig
from gpt.parameters.weights import random_weights, save

RHYME = (
    "One, two, buckle my shoe. Three, four, knock at the door. Five, six, pick up sticks. "
    "Seven, eight, lay them straight. Nine, ten, a big fat hen."
)
CONFIG = GPTConfig(n_layer=1, n_head=2, n_embd=64, n_ctx=64, vocab_size=257)  # 257: bytes, and the end of a text
STEPS, BATCH, LENGTH, RATE = 240, 8, 36, 0.003
Array = np.ndarray[Any, Any]
Backward = Callable[[Array], Array]


class Model:
    """The forward pass of gpt/reference/forward.py, with gradients."""

    def __init__(self, seed: int) -> None:
        self.weights = dict(random_weights(CONFIG, seed))
        self.gradients: dict[str, Array] = {}

    def linear(self, x: Array, name: str) -> tuple[Array, Backward]:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

        def backward(d: Array) -> Array:
            self.gradients[f"{name}.weight"] = rows(x).T @ rows(d)
            self.gradients[f"{name}.bias"] = d.sum((0, 1))
            return d @ weight.T

        return x @ weight + bias, backward

    def norm(self, x: Array, name: str) -> tuple[Array, Backward]:
        gain, shift = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        scale = 1 / np.sqrt(x.var(-1, keepdims=True) + CONFIG.eps)
        unit = (x - x.mean(-1, keepdims=True)) * scale

        def backward(d: Array) -> Array:
            self.gradients[f"{name}.weight"], self.gradients[f"{name}.bias"] = (d * unit).sum((0, 1)), d.sum((0, 1))
            d = d * gain
            return scale * (d - d.mean(-1, keepdims=True) - unit * (d * unit).mean(-1, keepdims=True))

        return unit * gain + shift, backward

    def loss(self, tokens: Array, targets: Array) -> float:
        """The mean loss of targets (B, T) after tokens (B, T), in nats. Leaves the gradients of all weights."""
        table, places = self.weights["wte.weight"], self.weights["wpe.weight"]
        x0 = table[tokens] + places[: tokens.shape[1]]  # (B, T, C)
        h1, back_ln_1 = self.norm(x0, "h.0.ln_1")
        qkv, back_attn = self.linear(h1, "h.0.attn.c_attn")
        y, back_attention = attention(qkv)
        y, back_proj = self.linear(y, "h.0.attn.c_proj")
        x1 = x0 + y
        h2, back_ln_2 = self.norm(x1, "h.0.ln_2")
        hidden, back_fc = self.linear(h2, "h.0.mlp.c_fc")
        active, back_gelu = gelu(hidden)
        y, back_out = self.linear(active, "h.0.mlp.c_proj")
        last, back_ln_f = self.norm(x1 + y, "ln_f")
        odds = softmax(last @ table.T)  # (B, T, V)

        picked = np.take_along_axis(odds, targets[..., None], -1)
        d = (odds - np.eye(CONFIG.vocab_size, dtype=np.float32)[targets]) / targets.size
        of_table = rows(d).T @ rows(last)
        d = back_ln_f(d @ table)
        d = d + back_ln_2(back_fc(back_gelu(back_out(d))))
        d = d + back_ln_1(back_attn(back_attention(back_proj(d))))
        np.add.at(of_table, tokens, d)
        self.gradients["wte.weight"], self.gradients["wpe.weight"] = of_table, np.zeros_like(places)
        self.gradients["wpe.weight"][: tokens.shape[1]] = d.sum(0)
        return float(-np.log(picked).mean())


def rows(x: Array) -> Array:
    """(B, T, C) as (B * T, C)."""
    return x.reshape(-1, x.shape[-1])


def softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def gelu(x: Array) -> tuple[Array, Backward]:
    c = np.float32(np.sqrt(2 / np.pi))
    t = np.tanh(c * (x + 0.044715 * x**3))
    slope = 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * c * (1 + 3 * 0.044715 * x**2)
    return 0.5 * x * (1 + t), lambda d: d * slope


def attention(qkv: Array) -> tuple[Array, Backward]:
    batch, length, _ = qkv.shape
    q, k, v = qkv.reshape(batch, length, 3, CONFIG.n_head, -1).transpose(2, 0, 3, 1, 4)  # (B, H, T, D) each
    scale = np.float32(CONFIG.head_size**-0.5)
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)
    weights = softmax(q @ k.swapaxes(-1, -2) * scale + mask)

    def backward(d: Array) -> Array:
        d = d.reshape(batch, length, CONFIG.n_head, -1).transpose(0, 2, 1, 3)
        of_weights = d @ v.swapaxes(-1, -2)
        of_scores = scale * weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
        parts = np.stack([of_scores @ k, of_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ d])
        return parts.transpose(1, 3, 0, 2, 4).reshape(qkv.shape)

    return (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, -1), backward


def train(model: Model) -> None:
    """Adam on windows of the rhyme, which is read again and again."""
    rng = np.random.default_rng(0)
    text = np.frombuffer((RHYME + " ").encode() * 2, np.uint8).astype(np.int64)
    first, second = ({name: np.zeros_like(w) for name, w in model.weights.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        starts = rng.integers(0, len(RHYME) + 1, (BATCH, 1))
        window = text[starts + np.arange(LENGTH + 1)]
        loss = model.loss(window[:, :-1], window[:, 1:])
        for name, gradient in model.gradients.items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.01 * (gradient**2 - second[name])
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.99**step)
            rate = np.float32(RATE * (1 - step / STEPS))  # smaller and smaller steps, so that it settles
            model.weights[name] = model.weights[name] - rate * mean / (np.sqrt(square) + 1e-8)
        if step % 60 == 0:
            print(f"step {step}: loss {loss:.3f} nats a byte", flush=True)


def main() -> None:
    model = Model(seed=1)
    train(model)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), CONFIG, {name: weight.astype(np.float32) for name, weight in model.weights.items()})
        with ts.GPT.from_pretrained(folder, dtype="f32") as gpt:
            print(f"{gpt}\non {gpt.executor.name}:")
            print("Three, four,", end="", flush=True)
            for piece in gpt.stream("Three, four,", max_new_tokens=20, temperature=0):
                print(piece, end="", flush=True)
            print()


if __name__ == "__main__":
    main()
