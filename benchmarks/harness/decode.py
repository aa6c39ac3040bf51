"""One token per sequence over a full key-value cache, beside PyTorch's static cache in a graph, eager and compiled.

Both sides start from the same cache, which PyTorch filled from a random text. PyTorch's ways share a copy of it. The
reference computes the step from this cache in f32. Before every sample the state is set back by one position, so that
each sample is the same step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpt.model import GPT, KVCache
from toolchain.errors import ConformanceError

from ..cases.cases import DecodeCase
from ..cases.check import Verdict, judge, loosest, model_bounds
from ..peers.pytorch import Tensor, torch
from ..peers.torch_gpt import Cache
from ..peers.torch_side import MAX_AUTOTUNE
from .harness import Contender, Maker, Outcome, run_contenders
from .kernels import Kernels
from .models import BACKENDS, Models, PeerModel
from .our_side import poison
from .rig import Rig

if TYPE_CHECKING:
    from gpt.graphs import Decode

PREFILL_SEQUENCES = 8  # at a time
PeerCache = Any  # what a model of PyTorch takes as a cache


class DecodeBench:
    """The cache before the step, the result of the reference step, and the contenders."""

    def __init__(self, rig: Rig, models: Models, case: DecodeCase, seed: int = 1) -> None:
        self.rig, self.models, self.case = rig, models, case
        self.last = case.positions - 1  # where the step's own key and value go
        self._our_cache: KVCache | None = None
        side, vocab, config = rig.torch, case.config.vocab_size, case.config
        side.seed(seed)
        prompt: Tensor = side.integers(vocab, (case.batch, self.last), torch.int64)
        self.tokens: Tensor = side.integers(vocab, (case.batch,), torch.int64)
        self.position = torch.tensor([self.last], device=side.device)
        shape = (case.batch, config.kv_heads, case.positions, config.head_size)
        empty = functools.partial(torch.full, shape, float("nan"), dtype=side.dtype(case.dtype), device=side.device)
        self.before = Cache(*([empty() for _ in range(config.n_layer)] for _ in "kv"))
        for start in range(0, case.batch, PREFILL_SEQUENCES):
            some = slice(start, start + PREFILL_SEQUENCES)
            models.eager.fill(prompt[some], Cache(*([layer[some] for layer in layers] for layers in self.before)))
        self.backend = models.fastest_attention(case.batch, 1, case.positions, causal=False)
        exact = Cache(*([layer.float() for layer in layers] for layers in self.before))
        with side.sdpa("math"):  # the others may multiply f32 as tf32
            self.logits: Tensor = self.step_once(models.reference, exact)
        self.row = self.written(exact)
        del exact
        side.release()  # a large cache is twice as large in f32: our executor needs that memory
        with side.sdpa(self.backend):
            logits = self.step_once(models.eager, self.peers_cache)
        pairs = zip((logits, *self.written(self.peers_cache)), (self.logits, *self.row), strict=True)
        self.bounds = [model_bounds(case.dtype, side.errors(got, wanted)) for got, wanted in pairs]
        side.synchronize()

    def step_once(self, model: PeerModel, cache: Cache) -> Tensor:
        held = model.hold(cache)
        model.rewind(held, self.last)
        return self.models.cut(model.step(self.tokens, self.position, held))

    @functools.cached_property
    def peers_cache(self) -> Cache:
        """The cache that all of PyTorch's ways write to, each the same row. One of their own would not fit for each."""
        return Cache(*([layer.clone() for layer in layers] for layers in self.before))

    def our_cache(self, model: GPT) -> KVCache:
        """The cache that all of our models write to, for the same reason."""
        if self._our_cache is None:
            self._our_cache = KVCache(model, self.case.batch, self.case.positions)
        return self._our_cache

    def restore(self) -> None:
        """Undo what the last of PyTorch's ways wrote to their cache."""
        for now, then in zip((*self.peers_cache.k, *self.peers_cache.v), (*self.before.k, *self.before.v), strict=True):
            now.copy_(then)

    def written(self, cache: Cache) -> tuple[Tensor, Tensor]:
        """The keys and values that the step wrote to a cache, each (L, B, G, D)."""
        k, v = (torch.stack([layer[:, :, self.last] for layer in layers]) for layers in cache)
        return k, v

    def clear_row(self, cache: Cache) -> None:
        """Clear the row of the cache that the step has to write."""
        for layers in cache:
            for layer in layers:
                layer[:, :, self.last] = float("nan")

    def makers(self) -> list[Maker]:
        best, called = self.backend, self.models.peer.NAME
        backends = (*BACKENDS, "efficient") if self.case.config.group == 1 else BACKENDS  # it takes no grouped heads
        peers = [Maker(f"{called}graph, {b}", "graph", self.peer(b)) for b in backends]
        peers.append(Maker(f"{called}graph, masked", "graph", self.peer("any", masked=True)))
        if self.case.compiled:
            name = f"{called}torch.compile {MAX_AUTOTUNE}, graph, {best}"
            peers.append(Maker(name, "compile", self.peer(best, MAX_AUTOTUNE)))
        ours = self.rig.makers(self.ours)
        return ours + [peer for peer in peers if peer.kind in self.rig.peers]

    def ours(self, kernels: Kernels) -> Contender:
        from gpt.graphs import Decode  # here: a model that cannot be captured is a row, not the end of the run

        return self.step_of(self.models.ours(kernels), Decode)

    def step_of(self, model: GPT, decode: Callable[[GPT, KVCache], Decode]) -> Contender:
        """Steps of a model of ours; `decode` makes them ready to run."""
        side, case = self.rig.torch, self.case
        state = self.our_cache(model)
        # (B, P, G, D) of each layer as (B, G, P, D): the same memory, seen from PyTorch
        pairs = [[torch.from_dlpack(x).transpose(1, 2) for x in state.layer(i)] for i in range(case.config.n_layer)]
        cache = Cache([k for k, _ in pairs], [v for _, v in pairs])
        for ours, theirs in zip((*cache.k, *cache.v), (*self.before.k, *self.before.v), strict=True):
            ours.copy_(theirs)
        side.synchronize()
        step = decode(model, state)
        tokens = self.tokens.cpu().numpy().astype(np.int32)
        lengths = np.full(case.batch, self.last, np.int32)
        prepare = functools.partial(step.reset, tokens, lengths)

        def check() -> Verdict:
            self.clear_row(cache)
            side.synchronize()
            poison(step.logits)
            prepare()
            step.run()
            self.rig.executor.synchronize()
            verdict = self.judge(torch.from_dlpack(step.logits), torch.from_dlpack(step.tokens), cache)
            contender.host = self.rig.ours.host_time(step.run, prepare)
            return verdict

        ran = model.launcher.borrowed_ops
        contender = Contender(check, functools.partial(self.rig.ours.time_us, step.run, prepare), entry=ran)
        return contender

    def peer(self, backend: str, mode: str = "", *, masked: bool = False) -> Callable[[], Contender]:
        """PyTorch's step in a CUDA graph. Without a mask it only works for a cache that the step fills; with a mask,
        for any position."""

        def build() -> Contender:
            side, model, cut = self.rig.torch, self.models.eager, self.models.cut
            tokens, position, cache = self.tokens.clone(), self.position.clone(), self.peers_cache
            held = model.hold(cache)
            self.restore()

            def step(tokens: Tensor, position: Tensor, held: PeerCache) -> Tensor:
                logits = cut(model.step(tokens, position, held, masked=masked))
                tokens.copy_(logits.argmax(-1))
                position.add_(1)
                return logits

            call = side.compile(step, mode) if mode else step

            def prepare() -> None:
                tokens.copy_(self.tokens)
                position.copy_(self.position)
                model.rewind(held, self.last)

            with side.sdpa(backend):
                replay = side.capture([functools.partial(call, tokens, position, held)], 1, prepare)

            def check() -> Verdict:
                self.clear_row(cache)
                replay.poison()
                prepare()
                replay.run()
                side.synchronize()
                return self.judge(replay.outputs()[0], tokens, cache)

            return Contender(check, functools.partial(side.time_us, replay.run, prepare))

        return build

    def judge(self, logits: Tensor, tokens: Tensor, after: Cache) -> Verdict:
        """Check the logits, the row of the cache that was written, the other rows, and the next tokens."""
        self.rig.torch.synchronize()
        pairs = zip((logits, *self.written(after)), (self.logits, *self.row), strict=True)
        found = [self.rig.torch.errors(got, wanted) for got, wanted in pairs]
        names = ("logits", "keys written", "values written")
        verdicts = [judge(*one) for one in zip(names, found, self.bounds, strict=True)]
        for now, then in zip((*after.k, *after.v), (*self.before.k, *self.before.v), strict=True):
            if not torch.equal(now[:, :, : self.last], then[:, :, : self.last]):
                raise ConformanceError("keys or values of earlier positions changed")
        chosen = logits.gather(1, tokens.long()[:, None])[:, 0]
        if not torch.equal(chosen, logits.max(dim=-1).values):
            raise ConformanceError("a next token is not the likeliest one")
        return loosest(verdicts)


def measure(rig: Rig, models: Models, case: DecodeCase) -> list[Outcome]:
    return run_contenders(DecodeBench(rig, models, case).makers(), rig.plan)
