"""What all cases of a run share: the device from both sides, the bundle, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolchain.bundle import Bundle
from toolchain.runtime import Executor, Launcher

from .harness import Kind, Plan
from .options import Options
from .our_side import OurSide
from .roofline import Ceilings
from .torch_side import TorchSide


@dataclass(frozen=True)
class Rig:
    """`sources`: those of the bundle that were asked for."""

    executor: Executor
    bundle: Bundle
    sources: Sequence[str]
    peers: Sequence[Kind]
    ours: OurSide
    torch: TorchSide
    ceilings: Ceilings
    plan: Plan

    def launcher(self, source: str) -> Launcher:
        return Launcher(self.bundle, source, self.executor)


def open_rig(
    executor: Executor, bundle: Bundle, torch: TorchSide, ceilings: Ceilings, options: Options,
    say: Callable[[str], object],
) -> Rig:  # fmt: skip
    """Both sides of one device."""
    sources = [source for source in bundle.sources if not options.sources or source in options.sources]
    plan = Plan(options.samples, options.limit_s, torch.healthy, say)
    return Rig(
        executor, bundle, sources, options.peers, OurSide(executor, torch.flush_bytes), torch, ceilings, plan,
    )  # fmt: skip
