"""Measures the forward pass of a model, logits at all positions, beside PyTorch's: eager, as a graph, and compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..cases.cases import ForwardCase
from ..cases.check import Bounds, Errors, Verdict, judge, model_bounds, total
from ..peers.pytorch import Tensor, torch
from ..peers.torch_side import MAX_AUTOTUNE, Replay
from .harness import Contender, Maker, Outcome, run_contenders
from .kernels import Kernels
from .models import BACKENDS, Models, PeerModel
from .our_side import poison
from .rig import Rig

REFERENCE_ROWS = 8192  # tokens that the f32 reference takes at a time


class ForwardBench:
    """The tokens, their reference logits, and the contenders."""

    def __init__(self, rig: Rig, models: Models, case: ForwardCase, seed: int = 1) -> None:
        self.rig, self.models, self.case = rig, models, case
        side = rig.torch
        side.seed(seed)
        self.tokens: Tensor = side.integers(case.config.vocab_size, (case.batch, case.length), torch.int64)
        self.backend = models.fastest_attention(case.batch, case.length, case.length, causal=True)
        step = max(1, REFERENCE_ROWS // case.length)
        with side.sdpa("math"):  # the others may multiply f32 as tf32
            self.reference: list[Tensor] = [models.cut(models.reference(t)) for t in self.tokens.split(step)]
        with side.sdpa(self.backend):
            eager = models.eager(self.tokens)
        self.bounds: Bounds = model_bounds(case.dtype, self.errors(eager))
        side.synchronize()

    def errors(self, logits: Tensor) -> Errors:
        """The errors of logits (B, T, V or Vp)."""
        step = max(1, REFERENCE_ROWS // self.case.length)
        pieces = zip(self.models.cut(logits).split(step), self.reference, strict=True)
        return total(self.rig.torch.errors(got, wanted) for got, wanted in pieces)

    def makers(self) -> list[Maker]:
        best, models, called = self.backend, self.models, self.models.peer.NAME
        if self.case.group == "scaling":  # a scaling case, one point of a curve: only the cheap peer
            peers = [Maker(f"{called}graph, {best}", "graph", self.peer(models.eager, best, "graph"))]
        else:
            peers = [Maker(f"{called}eager, {best}", "eager", self.peer(models.eager, best, "each"))]
            peers += [Maker(f"{called}graph, {b}", "graph", self.peer(models.eager, b, "graph")) for b in BACKENDS]
            peers.append(self.other_way())
        for mode, how in (("reduce-overhead", "steps"), (MAX_AUTOTUNE, "graph")) if self.case.compiled else ():
            name = f"{called}torch.compile {mode}{', graph' if how == 'graph' else ''}, {best}"
            peers.append(Maker(name, "compile", self.peer(models.eager, best, how, mode)))
        ours = self.rig.makers(self.ours)
        return ours + [peer for peer in peers if peer.kind in self.rig.peers]

    def other_way(self) -> Maker:
        """A graph of the family's other way to compute the model."""
        best, models = self.backend, self.models
        if models.config.family == "llama":
            masked = functools.partial(models.eager, masked=True)
            return Maker(f"{models.peer.NAME}graph, masked", "graph", self.peer(masked, "any", "graph"))
        return Maker(f"graph, {best}, fused GELU", "graph", self.peer(models.fused_gelu, best, "graph"))

    def ours(self, kernels: Kernels) -> Contender:
        from gpt.graphs import Forward  # here: a model that cannot be captured is a row, not the end of the run

        ours, case = self.rig.ours, self.case
        held = ours.start_peak()
        forward = Forward(self.models.ours(kernels, case.folded), case.batch, case.length)
        forward.set_tokens(self.tokens.cpu().numpy().astype(np.int32))

        def check() -> Verdict:
            poison(forward.logits)
            forward.run()
            self.rig.executor.synchronize()
            if case.group == "scaling":  # where our models are new: see `measure`
                contender.peak_bytes = ours.peak(held)
            return self.judge(torch.from_dlpack(forward.logits))

        ran = forward.model.launcher.borrowed_ops
        contender = Contender(check, functools.partial(ours.time_us, forward.run), entry=ran)
        return contender

    def peer(self, model: PeerModel, backend: str, how: str, mode: str = "") -> Callable[[], Contender]:
        """A peer. `how`: `each` launches every call, `steps` leaves graphs to the compiler, `graph` captures one."""

        def build() -> Contender:
            side = self.rig.torch
            call: Callable[[Tensor], Tensor] = side.compile(model, mode) if mode else model

            def run() -> Tensor:
                with side.sdpa(backend):
                    if how == "steps":
                        torch.compiler.cudagraph_mark_step_begin()
                    return call(self.tokens)

            held = side.start_peak()
            replay: Replay = side.capture([run], 1) if how == "graph" else side.each([run], 1)

            def check() -> Verdict:
                replay.poison()
                replay.run()
                side.synchronize()
                if (peak := side.peak(held)) is not None:
                    contender.peak_bytes = peak + self.models.peer_bytes
                return self.judge(replay.outputs()[0])

            contender = Contender(check, functools.partial(side.time_us, replay.run))
            return contender

        return build

    def judge(self, logits: Tensor) -> Verdict:
        return judge("logits", self.errors(logits), self.bounds)


def measure(rig: Rig, models: Models, case: ForwardCase) -> list[Outcome]:
    if case.group == "scaling":
        models.forget_ours()
    return run_contenders(ForwardBench(rig, models, case).makers(), rig.plan)
