"""Shared by all cases of a run: the device as both sides use it, our kernels, and the options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolchain.runtime import Executor

from ..cases.options import Kind, Options
from ..cases.roofline import Ceilings
from ..peers.torch_side import TorchSide
from .harness import Contender, Maker, MeasurementPlan
from .kernels import Kernels
from .our_side import OurSide


@dataclass(frozen=True)
class Rig:
    """`kernels`: ours, of the measured bundle and of the bundles that it is compared with."""

    executor: Executor
    kernels: Sequence[Kernels]
    peers: Sequence[Kind]
    ours: OurSide
    torch: TorchSide
    ceilings: Ceilings
    plan: MeasurementPlan

    def makers(self, build: Callable[[Kernels], Contender]) -> list[Maker]:
        """A maker of a contender for each of our kernels."""
        return [kernels.maker(build) for kernels in self.kernels]


def open_rig(
    executor: Executor, kernels: Sequence[Kernels], torch: TorchSide, ceilings: Ceilings, options: Options,
    say: Callable[[str], object],
) -> Rig:  # fmt: skip
    """Make a rig with both sides on one device."""
    plan = MeasurementPlan(options.samples, options.limit_s, torch.healthy, say)
    return Rig(
        executor, kernels, options.peers, OurSide(executor, torch.flush_bytes), torch, ceilings, plan,
    )  # fmt: skip
