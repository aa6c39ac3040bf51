"""Finds the entries that a model launches on a target, by running its passes without kernels and recording the
launches.

So a bundle for one model can hold exactly the entries that the model needs, without a list kept by hand.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from conformance.cells import borrows_from
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import DEFAULT, committed
from toolchain.contract.entry import EntrySpec
from toolchain.runtime import Allocation, DeviceBuffer, Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.executor import Command
from toolchain.runtime.layout import NUMPY, dtype_name
from toolchain.runtime.peers import Peers

from .config import GPTConfig
from .generate import generate_batch
from .model import GPT
from .parallel import AnyGPT, ParallelGPT
from .parameters.one_by_one import Zeros
from .parameters.weights import Weights, shapes
from .sampling import Sampling

_NOTHING = FileRef(Path(), "")
_FORM = tile_ir(b"", "13.4").form


class DryExecutor(CpuExecutor):
    """Stands in for a device of `target` (None: the interpreter). It runs nothing, and its memory is zeros, which take
    none of the system's, because nobody writes there. `launched` collects the entries that would have been launched."""

    def __init__(self, target: str | None, sms: int) -> None:
        super().__init__(sanitize=False)
        self.name, self.target, self.sms = f"a dry run for {target or 'the CPU'}", target, sms
        self.launched: dict[tuple[str, str], EntrySpec] = {}

    @property
    def runs_ptx(self) -> bool:
        return self.target is not None

    def allocate(self, nbytes: int) -> Allocation:
        # Not numpy's: it takes small pieces from memory that was used before, and clears them.
        backing = [mmap.mmap(-1, nbytes + mmap.PAGESIZE)]
        return self.adopt(np.frombuffer(backing[0], np.uint8).ctypes.data, nbytes, backing.clear)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> DeviceBuffer:
        return self.empty(array.shape, dtype_name(array.dtype))

    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]:
        return np.zeros(source.shape, NUMPY[source.dtype])

    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None:
        del target, array

    def copy(self, target: DeviceBuffer, source: DeviceBuffer) -> None:
        del target, source

    def fill(self, target: DeviceBuffer, pattern: int) -> None:
        del target, pattern

    def prepare(
        self, bundle: Bundle, entry: BundleEntry, arrays: Sequence[DeviceBuffer], grid: tuple[int, int, int]
    ) -> Command:
        del bundle, arrays, grid
        self.launched[entry.spec.source, entry.spec.symbol] = entry.spec
        return lambda arrays, scalars: None  # noqa: ARG005


class DryPeers(Peers):
    """Stands in for several devices, all of whose launches count as those of `executor`."""

    def __init__(self, executor: DryExecutor, ranks: int) -> None:
        executors = [DryExecutor(executor.target, executor.sms) for _ in range(ranks)]
        for each in executors:
            each.launched = executor.launched
        super().__init__(executors)


def on_ranks(ranks: int) -> Callable[[GPTConfig, Weights, Launcher, str], ParallelGPT]:
    """A `model` for `launched`: one that so many devices share."""

    def model(config: GPTConfig, weights: Weights, launcher: Launcher, dtype: str) -> ParallelGPT:
        del weights  # which would be read
        assert isinstance(launcher.executor, DryExecutor)
        peers = DryPeers(launcher.executor, ranks)
        launchers = [
            Launcher(launcher.bundle, launcher.source, each, borrows_from=launcher.borrows_from)
            for each in peers.executors
        ]
        return ParallelGPT(config, Zeros(shapes(config), dtype), launchers, peers, dtype)

    return model


def launched(
    specs: Sequence[EntrySpec],
    config: GPTConfig,
    weights: Weights,
    dtype: str,
    executor: DryExecutor,
    use: Callable[[AnyGPT], object],
    model: Callable[[GPTConfig, Weights, Launcher, str], AnyGPT] = GPT,
    source: str = "",
) -> list[EntrySpec]:
    """The entries among `specs` that a model launches when `use` is called with it. `specs`: those of one source, and
    behind them those of the source that it borrows from; or those of the sources that a virtual `source` chooses among.
    `model`: makes the model. Raises BundleError or LaunchError for a launch that none of them fits."""
    own, tables = {name for spec in specs for name in spec.targets}, committed()
    policies = {name: policy for name, policy in tables.policies.items() if name in own or name == DEFAULT}
    picks = {name: listed for name, listed in tables.picks.items() if name in own}
    bundle = Bundle(Path(), tuple(BundleEntry(spec, _NOTHING, _FORM, {}) for spec in specs), {}, policies, picks)
    source = source or specs[0].source
    config = replace(config, end_tokens=())  # all logits are zero: the first token would often end the text
    use(model(config, weights, Launcher(bundle, source, executor, borrows_from=borrows_from(source)), dtype))
    return list(executor.launched.values())


def continue_texts(
    prompts: Sequence[int], count: int | None = None, temperature: float = 0
) -> Callable[[AnyGPT], object]:
    """A `use` for `launched`: continue texts of so many tokens together, by `count` tokens (None: see `room`)."""
    texts = [np.zeros(prompt, np.int32) for prompt in prompts]
    sampling = Sampling(temperature=temperature)

    def use(model: AnyGPT) -> None:
        steps = generate_batch(model, texts, max_new_tokens=count, sampling=sampling)
        list(islice(steps, 2))  # the first reads the prompts, the second decodes; all others do the same

    return use


def forward_passes(*sizes: tuple[int, int]) -> Callable[[AnyGPT], object]:
    """A `use` for `launched`: a forward pass for each of the sizes (sequences, tokens)."""
    return lambda model: [model.forward(np.zeros(size, np.int32)) for size in sizes]
