"""The results of choosing the next token, on a device: the likeliest token of each text, and the largest logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.runtime import DeviceBuffer, Executor

BYTES = 4  # of each number


@dataclass(frozen=True)
class Chosen:
    """`tokens` (B) i32; the largest logit of each of Z parts of a row (B, Z) f32, and its index (B, Z) i32. `both`: the
    largest and the tokens, if they lie side by side, so that the host reads them at once."""

    tokens: DeviceBuffer
    largest: DeviceBuffer
    indices: DeviceBuffer
    both: DeviceBuffer | None = None

    @classmethod
    def new(cls, executor: Executor, rows: int, parts: int) -> Chosen:
        """Room for those of B rows."""
        count = rows * (parts + 1)
        memory, first = executor.allocate(BYTES * count), BYTES * rows * parts
        return cls(
            executor.view(memory, first, (rows,), "i32"), executor.view(memory, 0, (rows, parts), "f32"),
            executor.empty((rows, parts), "i32"), executor.view(memory, 0, (count,), "i32"),
        )  # fmt: skip

    @property
    def parts(self) -> tuple[DeviceBuffer, DeviceBuffer]:
        return self.largest, self.indices

    def read(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The largest (B, Z) and the tokens (B), on the host."""
        if self.both is None:
            return self.largest.numpy(), self.tokens.numpy()
        read = self.both.numpy()
        largest, tokens = np.split(read, [read.size - self.tokens.shape[0]])
        return largest.view(np.float32).reshape(self.largest.shape), tokens
