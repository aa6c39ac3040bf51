"""The kernels of a model: those of a bundle that is there, or just those that its texts take, compiled for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from conformance.cells import borrows_from
from gpt.batches.many import on_one, warm
from gpt.config import GPTConfig
from gpt.launches import continue_texts, forward_passes, on_ranks
from gpt.model import GPT, KVCache
from gpt.parallel import AnyGPT, ParallelGPT
from gpt.parameters.quantize import kind_of
from gpt.parameters.weights import Weights
from gpt.text import Request
from toolchain.bundles.bundle import Bundle
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from toolchain.runtime import Executor, Launcher
from toolchain.runtime.peers import LOADING_S, Peers

from .making import make_bundle

USUAL = Path("build/bundle")
ROUNDING = {"f8": "attention_to_f8", "i8": "quantize_rows_i8"}  # ops that only quantized models launch


CACHING = "grouped_decode_attention_f8"  # one that only models with a cache in 8 bits launch


class Kernels:
    """Makes the model that continues a text. `devices`: the device that it runs on, or several. `bundle`: the one that
    the user named. A bundle that is made lives as long as `opened`."""

    def __init__(
        self, source: str, dtype: str, devices: Executor | Peers, config: GPTConfig, tensors: Weights,
        bundle: Path | None, opened: ExitStack, cache: str = "",
    ) -> None:  # fmt: skip
        self._source, self._dtype = source, dtype
        self._peers = devices if isinstance(devices, Peers) else None
        self._executors = devices.executors if isinstance(devices, Peers) else (devices,)
        self._executor = self._executors[0]
        self._config, self._tensors, self._opened = config, tensors, opened
        self._cache, self._named = cache, bundle is not None
        self._path = bundle or (USUAL if USUAL.exists() else None)
        self._entries: dict[tuple[str, str], EntrySpec] = {}  # by source and symbol, of the bundle that was made
        self._model: AnyGPT | None = None
        self._launcher: Launcher | None = None

    def model(self, request: Request) -> AnyGPT:
        """A model that has the kernels for these texts. The one before is kept if it has them."""
        prompts = [len(tokens) for tokens in request.tokens]
        # Both ways: which of them is taken decides who draws the token.
        return self._used(continue_texts(prompts, request.count, temperature) for temperature in (0, 1))

    def many_model(self, texts: int) -> GPT:
        """A model that has the kernels for so many texts that come and go."""
        return on_one(self._used([lambda model: warm(model, texts)]))

    def forward_model(self, batch: int, length: int) -> AnyGPT:
        """A model that has the kernels for a forward pass over `batch` sequences of `length` tokens."""
        return self._used([forward_passes((batch, length))])

    def step_model(self, batch: int, length: int) -> GPT:
        """A model that has the kernels to take so many tokens one by one. Raises UsageError for one on several
        devices."""

        def use(model: AnyGPT) -> None:
            one = on_one(model, "tokens are taken one by one")
            cache = KVCache(one, batch, length)
            one.prefill(np.zeros((batch, 1), np.int32), cache)
            one.decode(np.zeros(batch, np.int32), cache)

        return on_one(self._used([use]), "")

    def _used(self, uses: Iterable[Callable[[AnyGPT], object]]) -> AnyGPT:
        if self._path is not None and self._serves(self._path):
            self._model = self._model or self._with(Bundle.load(self._path))
            return self._model
        wanted = {(spec.source, spec.symbol): spec for spec in self._taken(uses)}
        if self._model is None or not wanted.keys() <= self._entries.keys():
            self._entries |= wanted
            self._model = self._with(self._compiled_once())
        return self._model

    def _serves(self, path: Path) -> bool:
        """Whether to take a bundle: one that the user named in any case. The usual one may have been made for another
        GPU, and then lacks the kernels of 8 bits, which not every target has."""
        kind = kind_of(self._tensors)
        wanted = [CACHING] * bool(self._cache)
        if kind is not None:
            rounding = [] if self._config.weights_only else [ROUNDING[kind.name]]
            wanted += [f"linear_weight_{kind.name}", *rounding]
        if self._named or not wanted:
            return True
        return {entry.spec.op for entry in Bundle.load(path).entries}.issuperset(wanted)

    def _compiled_once(self) -> Bundle:
        """Of several processes the first compiles, and the others find that in the cache."""
        peers = self._peers
        if peers is None or peers.world is None:
            return self._compiled()
        if peers.world.rank > 0:
            peers.barrier("the kernels", LOADING_S)
            return self._compiled()
        made = self._compiled()
        peers.barrier("the kernels", LOADING_S)
        return made

    def _with(self, bundle: Bundle) -> AnyGPT:
        launchers = [
            Launcher(bundle, self._source, each, borrows_from=borrows_from(self._source)) for each in self._executors
        ]
        self._launcher = launchers[0]
        if self._peers is None:
            return GPT(self._config, self._tensors, launchers[0], self._dtype, cache=self._cache)
        return ParallelGPT(self._config, self._tensors, launchers, self._peers, self._dtype)

    @property
    def borrowed_ops(self) -> str:
        """The ops that another source's kernels ran, in words; empty if there are none."""
        return self._launcher.borrowed_ops if self._launcher else ""

    def _taken(self, uses: Iterable[Callable[[AnyGPT], object]]) -> list[EntrySpec]:
        from toolchain.contract import targets

        from .selection import entries_used

        target = self._executor.target
        if target is not None and target not in targets.targets():
            raise UsageError(
                f"there is no compiled bundle, and {target} is not a target that can be compiled for",
                hint="name one with --bundle",
            )
        return entries_used(
            self._source,
            target,
            self._executor.sms,
            self._config,
            self._tensors,
            self._dtype,
            uses,
            on_ranks(self._peers.ranks) if self._peers else partial(GPT, cache=self._cache),
        )

    def _compiled(self) -> Bundle:
        return make_bundle(self._entries.values(), self._executor.target, self._opened)
