"""Keys and values of the positions seen so far: in the model's storage, or in 8-bit floats (e4m3) with a scale for each
head of each position, which takes about half the memory.

B sequences, P positions in a cache, G heads of keys and values, each of D numbers.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple, Protocol

import numpy as np

from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Executor

from ..config import GPTConfig
from .recorder import Recorder

F8 = "f8"
KINDS = ("", F8)  # of a cache: the model's storage, or 8-bit floats
DTYPE, F8_DTYPE = "bf16", "f8E4M3FN"  # of a model with such a cache, and of the cache


class Cached(NamedTuple):
    """A layer's keys and values, each (B, P, G, D)."""

    keys: DeviceBuffer
    values: DeviceBuffer

    def of(self, first: int, stop: int) -> Cached:
        """Those of some sequences."""
        return Cached(*(each.slice(0, first, stop) for each in self))


class CachedF8(NamedTuple):
    """The same in f8, each number times its head's scale (B, G, P) f32."""

    keys: DeviceBuffer
    values: DeviceBuffer
    key_scales: DeviceBuffer
    value_scales: DeviceBuffer

    def of(self, first: int, stop: int) -> CachedF8:
        return CachedF8(*(each.slice(0, first, stop) for each in self))

    def until(self, end: int) -> CachedF8:
        """The first positions."""
        rows, scales = (each.slice(1, 0, end) for each in self[:2]), (each.slice(2, 0, end) for each in self[2:])
        return CachedF8(*rows, *scales)

    def named(self) -> dict[str, DeviceBuffer]:
        """As ops call them."""
        return dict(zip(("k_cache", "v_cache", "k_scales", "v_scales"), self, strict=True))


class Model(Protocol):
    """What a cache takes of its model. `cache`: one of KINDS."""

    config: GPTConfig
    storage: str
    executor: Executor
    cache: str


def check_kind(kind: str, dtype: str) -> None:
    """Raises UsageError for a cache that is none, and for one that a model of this dtype cannot have."""
    if kind not in KINDS:
        raise UsageError(f"no cache {kind!r}", hint=f"{F8}, or leave it out")
    if kind and dtype != DTYPE:
        raise UsageError(f"a cache in {kind} is one of a model in {DTYPE}, not in {dtype}")


class KVCache:
    """Keys and values of B sequences, per layer. `lengths` (B,): filled positions of each sequence."""

    def __init__(self, model: Model, batch: int, positions: int | None = None) -> None:
        config = model.config
        positions = config.n_ctx if positions is None else positions
        if batch < 1 or not 1 <= positions <= config.n_ctx:
            raise UsageError(f"no cache of {batch} x {positions} positions: at least 1 x 1, at most {config.n_ctx}")
        shape = (config.n_layer, 2, batch, positions, config.kv_heads, config.head_size)
        self.memory = model.executor.empty(shape, F8_DTYPE if model.cache else model.storage)
        self.memory.fill(0)
        self.scales = None
        if model.cache:
            self.scales = model.executor.empty((*shape[:3], config.kv_heads, positions), "f32")
            self.scales.fill(0)
        self.batch, self.positions = batch, positions
        self.lengths = np.zeros(batch, np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of keys, values and scales."""
        return self.memory.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def layer(self, index: int) -> Cached | CachedF8:
        """Those of one layer."""
        both = self.memory.select(0, index)
        if self.scales is None:
            return Cached(both.select(0, 0), both.select(0, 1))
        scales = self.scales.select(0, index)
        return CachedF8(both.select(0, 0), both.select(0, 1), scales.select(0, 0), scales.select(0, 1))

    def sequence(self, index: int) -> KVCache:
        """The cache of one sequence alone, in the same memory."""
        one = copy(self)
        one.memory, one.batch = self.memory.slice(2, index, index + 1), 1
        one.scales = None if self.scales is None else self.scales.slice(2, index, index + 1)
        one.lengths = self.lengths[index : index + 1]
        return one


def elsewhere(model: Model, recorder: Recorder, batch: int) -> Cached | CachedF8:
    """Stands for each layer's cache while a pass is recorded: it is not in the workspace."""
    config = model.config
    shape = (batch, config.n_ctx, config.kv_heads, config.head_size)
    one = recorder.elsewhere(shape, F8_DTYPE if model.cache else model.storage)
    if not model.cache:
        return Cached(one, one)
    scales = recorder.elsewhere((batch, config.kv_heads, config.n_ctx), "f32")
    return CachedF8(one, one, scales, scales)
