"""What all cases of a run share: the device from both sides, our kernels, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolchain.runtime import Executor

from ..cases.options import Kind, Options
from ..cases.roofline import Ceilings
from ..peers.torch_side import TorchSide
from .harness import Contender, Maker, Plan
from .kernels import Kernels
from .our_side import OurSide


@dataclass(frozen=True)
class Rig:
    """`kernels`: ours, of the bundle that is measured and of those that it is compared with."""

    executor: Executor
    kernels: Sequence[Kernels]
    peers: Sequence[Kind]
    ours: OurSide
    torch: TorchSide
    ceilings: Ceilings
    plan: Plan

    def makers(self, build: Callable[[Kernels], Contender]) -> list[Maker]:
        """A contender of each of ours."""
        return [kernels.maker(build) for kernels in self.kernels]


def open_rig(
    executor: Executor, kernels: Sequence[Kernels], torch: TorchSide, ceilings: Ceilings, options: Options,
    say: Callable[[str], object],
) -> Rig:  # fmt: skip
    """Both sides of one device."""
    plan = Plan(options.samples, options.limit_s, torch.healthy, say)
    return Rig(
        executor, kernels, options.peers, OurSide(executor, torch.flush_bytes), torch, ceilings, plan,
    )  # fmt: skip
