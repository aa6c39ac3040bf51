"""The least time that work can take: its bytes over the memory's rate, its products over the matrix units' rate.

Each input is counted once and each output once; both rates are measured on the same machine in the same run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpt.config import GPTConfig
from gpt.parameters.weights import shapes
from toolchain.contract.op import ITEMSIZE, ops

Bound = Literal["memory", "compute"]
LAYERS = ("h.", "layers.")  # how the names of a layer's weights begin


@dataclass(frozen=True)
class Work:
    """`nbytes`: bytes that must cross the memory bus. `flops`: of matrix products; a multiply-add counts as two."""

    nbytes: int
    flops: int = 0

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.nbytes


@dataclass(frozen=True)
class Ceilings:
    """Measured rates: bytes/s of a large copy (read and written ones), FLOP/s of a large bf16 product."""

    bytes_per_s: float
    flops_per_s: float

    def floor_ms(self, work: Work) -> float:
        return 1e3 * max(work.nbytes / self.bytes_per_s, work.flops / self.flops_per_s)

    def bound(self, work: Work) -> Bound:
        """The rate that limits the work: memory or matrix units."""
        return "memory" if work.nbytes / self.bytes_per_s >= work.flops / self.flops_per_s else "compute"


def op_work(op: str, dtype: str, dims: Mapping[str, int]) -> Work:
    """The least work of an op, independent of the number of launches that compute it."""
    if op == "decode_attention":  # the cache, the token's query, key and value, and the result
        per_head = 2 * dims["P"] + 4
        return Work(ITEMSIZE[dtype] * dims["B"] * dims["H"] * dims["D"] * per_head, _flops(op, dims))
    nbytes = 0
    for param in ops()[op].params:
        if not param.dims:
            continue
        size = math.prod(dims[name] for name in param.dims)
        if op == "embedding" and param.name in ("wte", "wpe"):
            size = min(dims["N"], size // dims["C"]) * dims["C"]  # only the rows that are looked up
        if op == "kv_append" and param.role == "output":
            size = size // dims["P"] * dims["T"]  # only the rows that are written
        nbytes += size * ITEMSIZE[param.storage(dtype)]
    return Work(nbytes, _flops(op, dims))


def _flops(op: str, d: Mapping[str, int]) -> int:
    if op.startswith("linear"):
        return 2 * d["M"] * d["N"] * d["K"]
    match op:
        case "logits":
            return 2 * d["M"] * d["V"] * d["C"]
        case "attention":
            return 4 * d["B"] * d["H"] * d["D"] * visible(d["T"], d["S"])
        case "decode_attention":
            return 4 * d["B"] * d["H"] * d["D"] * d["P"]
        case _:
            return 0


def visible(queries: int, keys: int) -> int:
    """The number of (query, key) pairs that the causal mask leaves for the last `queries` of `keys` positions."""
    return queries * keys - queries * (queries - 1) // 2


def parameters(config: GPTConfig) -> int:
    """How many weights the model has."""
    return sum(math.prod(shape) for shape in shapes(config).values())


def _read(config: GPTConfig, rows: int, positions: int) -> int:
    """How many weights `rows` tokens at `positions` different positions need: of the tables that are only looked up,
    the rows that they use at most."""
    tables = {"wpe.weight": positions} if config.positions == "learned" else {}
    if not config.tied:
        tables["embed_tokens.weight"] = rows
    unread = sum(max(0, shapes(config)[name][0] - used) for name, used in tables.items())
    return parameters(config) - unread * config.n_embd


def forward_work(config: GPTConfig, batch: int, length: int, dtype: str) -> Work:
    """The work of logits at every position of (batch, length) tokens. Only the used rows of the table of positions are
    read."""
    rows = batch * length
    weights = _read(config, rows, length)
    nbytes = ITEMSIZE["i32"] * rows + ITEMSIZE[dtype] * (weights + rows * config.vocab_size)
    attention = 4 * batch * config.n_head * config.head_size * visible(length, length)
    return Work(nbytes, _products(config, rows) + config.n_layer * attention)


def decode_work(config: GPTConfig, batch: int, attended: int, dtype: str) -> Work:
    """The work of decoding one token per sequence. It attends to `attended` positions of the cache, its own
    included."""
    element, keys = ITEMSIZE[dtype], config.kv_heads * config.head_size
    cache = config.n_layer * 2 * batch * attended * keys  # one row of it is written, the others are read
    weights = _read(config, batch, batch)
    nbytes = ITEMSIZE["i32"] * 2 * batch + element * (weights + cache + batch * config.vocab_size)
    attention = 4 * batch * config.n_head * config.head_size * attended
    return Work(nbytes, _products(config, batch) + config.n_layer * attention)


def _products(config: GPTConfig, rows: int) -> int:
    """FLOPs of the products with weights: all matrices of the layers, then C x V."""
    matrices = (math.prod(s) for name, s in shapes(config).items() if name.startswith(LAYERS) and len(s) == 2)
    return 2 * rows * (sum(matrices) + config.n_embd * config.vocab_size)
