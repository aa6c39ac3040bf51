"""The model as CUDA graphs: captured once for a shape. A replay checks nothing, allocates nothing, and is one launch.

Data that changes from run to run (tokens, positions, the cache) is in memory whose addresses stay the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Graph

from .model import GPT, KVCache, Tokens


def ready(model: GPT, launch: Callable[[], None], *, graph: bool) -> Callable[[], object]:
    """What runs these launches: the replay of a graph, or the launches themselves."""
    return captured(model, launch).replay if graph else launch


def captured(model: GPT, launch: Callable[[], None], *, beside: bool = False) -> Graph:
    """The graph of these launches. `beside`: one that may run beside another."""
    with model.executor.capture(beside=beside) as graph:
        launch()
    return graph


class Forward:
    """A forward pass of B sequences of T tokens. `logits` (B, T, V) are overwritten by each run. With `graph=False` the
    launches go out one by one, which shows what a graph is worth."""

    def __init__(
        self, model: GPT, batch: int, length: int, *, graph: bool = True, out: DeviceBuffer | None = None,
        beside: bool = False,
    ) -> None:  # fmt: skip
        """`out`: where the logits go, (B T, padded V); None: to memory of their own. `beside`: a graph that may run
        beside another one. Raises UsageError for sizes that the model does not take."""
        tokens = np.zeros((batch, length), np.int32)
        model.check_tokens(tokens)
        self.model, self.batch, self.length = model, batch, length
        self._work = model.new_workspace(batch, length)
        out = model.new_logits(batch * length) if out is None else out
        self.logits = model.visible(out).unflatten(0, batch, length)
        model.place(self._work, tokens, np.zeros(batch, np.int32))
        self._launch = functools.partial(model.passes.forward, self._work, batch, length, out)
        self._graph = captured(model, self._launch, beside=beside) if graph else None

    def set_tokens(self, tokens: Tokens) -> None:
        """The tokens (B, T) of the next runs. Raises UsageError."""
        if self.model.check_tokens(tokens) != (self.batch, self.length):
            raise UsageError(f"this graph is of {self.batch} x {self.length} tokens, not {list(tokens.shape)}")
        self._work.tokens.copy_from(tokens.astype(np.int32).reshape(-1))

    def run(self) -> None:
        """Starts one forward pass; `logits` hold its result once the executor is synchronized."""
        if self._graph is None:
            self._launch()
        else:
            self._graph.replay()

    def run_by(self, start: Callable[[Graph], None]) -> None:
        """The same of a pass that is a graph, started by what Executor.beside gives."""
        assert self._graph is not None, "launches one by one cannot run beside others"
        start(self._graph)


class Logits(Protocol):
    """Those of a step, on one device or on several."""

    def numpy(self) -> NDArray[Any]: ...


class Prompted(Protocol):
    """What a prompt says of the next token: logits (1, V), and the likeliest token (1,)."""

    def numpy(self) -> NDArray[Any]: ...

    def likeliest(self) -> Tokens: ...


class Texts(Protocol):
    """Texts that are continued side by side, as generate.py does it: see Session."""

    def prefill(self, index: int, tokens: Tokens) -> Prompted: ...

    def steps(self) -> Steps: ...


class Steps(Protocol):
    """The decoding steps of some texts, as generate.py runs them: see Decode."""

    @property
    def logits(self) -> Logits: ...

    def reset(self, tokens: Tokens) -> None: ...

    def feed(self, tokens: Tokens) -> None: ...

    def run(self) -> None: ...

    def likeliest(self) -> Tokens: ...


class Decode:
    """Decoding steps of one token per sequence over a cache. A step reads each sequence's token and position from
    device memory, appends it, and writes the likeliest next token and the next position there. So for greedy decoding
    the host only launches, and where it draws the tokens itself it only replaces those (`feed`).

    `logits` (B, V) after the last token; `tokens` (B) i32: those of the next step. `graph`: as for Forward.
    """

    def __init__(self, model: GPT, cache: KVCache, *, graph: bool = True) -> None:
        self.model, self.cache = model, cache
        self._chosen = model.new_chosen(cache)
        self._work = replace(model.new_workspace(cache.batch, 1), tokens=self._chosen.tokens)
        out = model.new_logits(cache.batch)
        self.logits, self.tokens = model.visible(out), self._chosen.tokens
        launch = model.choosing_launches(self._work, cache, out, self._chosen)
        self._run = ready(model, launch, graph=graph)

    def reset(self, tokens: Tokens, lengths: NDArray[np.integer[Any]] | None = None) -> None:
        """Set the next step's tokens (B,), and how many positions of each sequence (B,) are filled: by default the
        cache's own lengths. Raises UsageError for values that do not fit, and then changes nothing."""
        column = np.asarray(tokens).reshape(-1, 1)  # (B, 1)
        self.model.check_tokens(column, self.cache, lengths)
        if lengths is not None:
            self.cache.lengths[:] = lengths
        self.model.place(self._work, column, self.cache.lengths)

    def feed(self, tokens: Tokens) -> None:
        """Set the next step's tokens (B,), without its positions. They are not checked: they come from the logits."""
        self.tokens.copy_from(tokens.astype(np.int32))

    def likeliest(self) -> NDArray[np.int32]:
        """The likeliest token (B,) after the last step, which the next one appends. Raises ConformanceError if one of
        the logits is NaN or positive infinity: then the largest of its part, which the device keeps, is so too."""
        largest, tokens = self._chosen.read()
        self.model.check_step(largest)
        return tokens

    def run(self) -> None:
        """Starts one step. Raises UsageError if the cache is full."""
        if int(self.cache.lengths.max()) >= self.cache.positions:
            raise UsageError(f"the cache of {self.cache.positions} positions is full", hint="make a longer one")
        self._run()
        self.cache.lengths += 1


class Session:
    """Texts that are continued side by side: their cache of `positions` each, their prompts, then steps."""

    def __init__(self, model: GPT, batch: int, positions: int) -> None:
        self._model = model
        self.cache = KVCache(model, batch, positions)

    def prefill(self, index: int, tokens: Tokens) -> Prompted:
        """Appends tokens (1, T) to one text."""
        return _Prompted(self._model, self._model.prefill(tokens, self.cache.sequence(index)))

    def captured_prefill(self, index: int, tokens: Tokens) -> CapturedPrompt:
        """The same as a graph that has not run."""
        launch, logits = self._model.prefill_launches(tokens, self.cache.sequence(index))
        choose, likeliest = self._model.argmax_launches(logits)

        def both() -> None:
            launch()
            choose()

        return CapturedPrompt(ready(self._model, both, graph=True), logits, likeliest)

    def steps(self) -> Steps:
        """Steps after all prompts."""
        return Decode(self._model, self.cache)


@dataclass(frozen=True)
class _Prompted:
    model: GPT
    logits: DeviceBuffer

    def numpy(self) -> NDArray[Any]:
        return self.logits.numpy()

    def likeliest(self) -> Tokens:
        return self.model.argmax(self.logits)


@dataclass(frozen=True)
class CapturedPrompt:
    """`run` it, then `logits` (1, V) are there, and `likeliest` reads the likeliest token (1,)."""

    run: Callable[[], object]
    logits: DeviceBuffer
    likeliest: Callable[[], Tokens]
