"""Which entries a model launches on a target: its passes are run without a kernel, and the launches remembered.

So a bundle for one model holds what that model takes and nothing else, and no list of it is kept by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from toolchain.artifact import tile_ir
from toolchain.bundle import Bundle, BundleEntry, FileRef
from toolchain.entries import DEFAULT, committed
from toolchain.entry import EntrySpec
from toolchain.runtime import Allocation, DeviceBuffer, Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.executor import Command

from .config import GPTConfig
from .generate import generate
from .model import GPT
from .weights import Weights

_NOTHING = FileRef(Path(), "")
_FORM = tile_ir(b"", "13.4").form


class DryExecutor(CpuExecutor):
    """Stands for a device of a `target` (None: the interpreter) and runs nothing. Memory is zeros. `launched`: the
    entries that were made ready for a launch."""

    def __init__(self, target: str | None, sms: int) -> None:
        super().__init__(sanitize=False)
        self.name, self.target, self.sms = f"a dry run for {target or 'the CPU'}", target, sms
        self.launched: dict[tuple[str, str], EntrySpec] = {}

    def allocate(self, nbytes: int) -> Allocation:
        allocation = super().allocate(nbytes)
        allocation.memory.data.fill(0)
        return allocation

    def prepare(
        self, bundle: Bundle, entry: BundleEntry, arrays: Sequence[DeviceBuffer], grid: tuple[int, int, int]
    ) -> Command:
        del bundle, arrays, grid
        self.launched[entry.spec.source, entry.spec.symbol] = entry.spec
        return lambda arrays, scalars: None  # noqa: ARG005


def launched(
    specs: Sequence[EntrySpec],
    config: GPTConfig,
    weights: Weights,
    dtype: str,
    executor: DryExecutor,
    use: Callable[[GPT], object],
) -> list[EntrySpec]:
    """The entries among `specs`, all of one source, that a model launches when it is used so. Raises BundleError or
    LaunchError where none of them takes a launch."""
    own = {name for spec in specs for name in spec.targets}
    policies = {name: policy for name, policy in committed().policies.items() if name in own or name == DEFAULT}
    bundle = Bundle(Path(), tuple(BundleEntry(spec, _NOTHING, _FORM, {}) for spec in specs), {}, policies)
    use(GPT(config, weights, Launcher(bundle, specs[0].source, executor), dtype))
    return list(executor.launched.values())


def continue_text(prompt: int, count: int, temperature: float = 0) -> Callable[[GPT], object]:
    """A use of a model: `count` tokens after as many as `prompt`."""
    tokens = np.zeros(prompt, np.int32)
    return lambda model: list(generate(model, tokens, max_new_tokens=count, temperature=temperature))


def forward_passes(*sizes: tuple[int, int]) -> Callable[[GPT], object]:
    """A use of a model: logits of so many sequences of so many tokens."""
    return lambda model: [model.forward(np.zeros(size, np.int32)) for size in sizes]
