"""One op at GPT-2's sizes beside PyTorch's best: graphs of back-to-back calls over several sets of inputs.

The sets take turns. Between two uses of a set, more data than twice the L2 cache has been read, so its inputs are not
in the cache, as in a model.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from toolchain.runtime import DeviceBuffer, Graph, Launcher

from ..cases.cases import OpCase
from ..cases.check import Bounds, Verdict, judge, loosest, op_bounds
from ..cases.programs import Program, fastest, programs
from ..peers.pytorch import torch
from ..peers.torch_op_peers import OpPeer, op_peers
from ..peers.torch_ops import Expected, expected, make_inputs
from ..peers.torch_side import MAX_AUTOTUNE
from .harness import Contender, Maker, Outcome, run_contenders
from .kernels import Kernels
from .our_side import poison
from .rig import Rig

SAMPLE_US = 200.0  # the least work in a sample, so that the cost of starting it does not matter
CALLS_MAX = 256
COPIED = 1 << 17


def sets_and_calls(case: OpCase, floor_ms: float, l2_bytes: int) -> tuple[int, int]:
    """The number of sets of inputs, and of calls in a sample. The calls are a multiple of the sets, and take at least
    SAMPLE_US even at the highest possible speed."""
    sets = max(1, math.ceil(2 * l2_bytes / case.work().nbytes))
    calls = min(CALLS_MAX, math.ceil(SAMPLE_US / (1e3 * floor_ms)))
    return sets, sets * math.ceil(calls / sets)


class OpBench:
    """The shared inputs of a case, and the expected results of each set."""

    def __init__(self, rig: Rig, case: OpCase, seed: int = 1) -> None:
        self.rig, self.case = rig, case
        self.sets, self.calls = sets_and_calls(case, rig.ceilings.floor_ms(case.work()), rig.torch.l2_bytes)
        rig.torch.seed(seed)
        self.inputs: list[dict[str, Any]] = [make_inputs(rig.torch, case) for _ in range(self.sets)]
        self.expected: list[Expected] = [expected(rig.torch, case, inputs) for inputs in self.inputs]
        rig.torch.synchronize()

    def makers(self) -> list[Maker]:
        ours = self.rig.makers(self.ours)
        peers = [
            Maker(peer.name, peer.kind, functools.partial(self.peer, peer))
            for peer in op_peers(self.case)
            if peer.kind in self.rig.peers
        ]
        copy = [] if self.case.work().flops else [Maker("copy of as many bytes", "copy", self.copy)]
        return ours + peers + copy

    def ours(self, kernels: Kernels) -> Contender:
        executor, case, ours = self.rig.executor, self.case, self.rig.ours
        launcher = kernels.launcher(executor)
        shared = [self._buffers(inputs) for inputs in self.inputs]
        ways = list(zip(*(programs(case, launcher, one) for one in shared), strict=True))
        graphs = [self._graph(launcher, sets) for sets in ways]
        best = fastest([graph.replay for graph in graphs], ours.time_us)
        sets, graph = ways[best], graphs[best]

        def check() -> Verdict:
            for one in sets:
                poison(one.result)
            graph.replay()
            executor.synchronize()
            return self.judge([torch.from_dlpack(one.result) for one in sets])

        clock = functools.partial(ours.time_us, graph.replay)
        return Contender(check, clock, self.calls, self.sets, sets[0].entries(launcher, case.dtype))

    def _graph(self, launcher: Launcher, sets: Sequence[Program]) -> Graph:
        """A graph of a sample's calls, over the sets in turns. Each is run once before, because a capture must not load
        kernels."""
        for one in sets:
            one.run(launcher, self.case.dtype)
        self.rig.executor.synchronize()
        with self.rig.executor.capture() as graph:
            for index in range(self.calls):
                sets[index % self.sets].run(launcher, self.case.dtype)
        return graph

    def peer(self, peer: OpPeer) -> Contender:
        side = self.rig.torch
        call = peer.call
        if peer.kind == "compile":
            call = side.compile(call, MAX_AUTOTUNE)
        with side.sdpa(peer.attention):
            arranged = [peer.arrange(inputs) for inputs in self.inputs]
            calls = [functools.partial(call, arranged[index % self.sets]) for index in range(self.calls)]
            make = side.each if peer.kind == "eager" else side.capture
            replay = make(calls, self.sets)

        def check() -> Verdict:
            replay.poison()
            replay.run()
            side.synchronize()
            return self.judge([peer.result(output) for output in replay.outputs()])

        return Contender(check, functools.partial(side.time_us, replay.run), self.calls, self.sets)

    def copy(self) -> Contender:
        """A copy that reads half of the case's bytes and writes the other half, with the same numbers of sets and
        calls. It is made in whole pieces of COPIED bytes, because a remainder would cost another launch."""
        side = self.rig.torch
        elements = max(1, round(self.case.work().nbytes / 2 / COPIED)) * COPIED // torch.int32.itemsize
        sources = [side.integers(2**31 - 1, (elements,)) for _ in self.inputs]
        targets = [torch.empty_like(source) for source in sources]
        each = [functools.partial(target.copy_, source) for target, source in zip(targets, sources, strict=True)]
        replay = side.capture([each[index % self.sets] for index in range(self.calls)], self.sets)

        def check() -> Verdict:
            replay.poison()
            replay.run()
            side.synchronize()
            pairs = zip(targets, sources, strict=True)
            return loosest([judge("copy", side.errors(*pair), Bounds(0.0, 0.0)) for pair in pairs])

        return Contender(check, functools.partial(side.time_us, replay.run), self.calls, self.sets)

    def judge(self, results: Sequence[Any]) -> Verdict:
        """Check the output of every set. Raises ConformanceError."""
        self.rig.torch.synchronize()
        verdicts: list[Verdict] = []
        for index, (result, wanted) in enumerate(zip(results, self.expected, strict=True)):
            found = self.rig.torch.errors(result, wanted.exact)
            bounds = op_bounds(self.case.op, self.case.dtype, wanted.eager)
            verdicts.append(judge(f"set {index + 1} of {self.sets}", found, bounds))
        return loosest(verdicts)

    def _buffers(self, inputs: Mapping[str, Any]) -> dict[str, DeviceBuffer | float]:
        share = self.rig.ours.share
        return {name: share(value) if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}


def measure(rig: Rig, case: OpCase) -> list[Outcome]:
    return run_contenders(OpBench(rig, case).makers(), rig.plan)
