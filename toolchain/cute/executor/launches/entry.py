"""An entry of a bundle on the executor: its kernel as text or as traced, and the arguments as a launch passes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....contract.artifact import Form
from ....contract.entry import ALIGNMENT, EntrySpec
from ....contract.op import CHANNEL
from ...dsl.trace import Kernel
from ..state.memory import GlobalMemory
from .arguments import Arguments, TensorMap
from .launch import Launching, Report, launch, of_text, of_traced
from .ranks import launch_ranks


@dataclass(frozen=True)
class EntryLaunch:
    """A launch of the kernel of an entry. `arrays`, `scalars`: by the op's parameters; arrays are changed in place.
    `kernel`: as text, or as it was traced, which saves printing and reading it.

    What the entry does not ask for, it does not get: an array lies at a multiple of 16 bytes only if it is `aligned`,
    and its rows have gaps unless it is `contiguous`.
    """

    kernel: str | Kernel
    spec: EntrySpec
    form: Form
    arrays: Mapping[str, NDArray[Any]]
    scalars: Mapping[str, float]
    grid: tuple[int, int, int]

    @property
    def symbol(self) -> str:
        return self.spec.symbol

    @property
    def blocks_meet(self) -> bool:
        """Whether each block meets those of its number on other ranks."""
        return CHANNEL[0] in self.spec.op_spec.peers

    @property
    def meeting(self) -> str:
        """What it has in common with the launches of the other ranks, in words. Each may be of the entry for the rank's
        own part of the work; blocks that meet have the same tiles too."""
        op, sizes = self.spec.op_spec, self.spec.bind({name: array.shape for name, array in self.arrays.items()})
        same = {dim: size for dim, size in sizes.items() if dim in op.alike}
        if self.blocks_meet:
            same |= {name: number for name, number in self.spec.constants.items() if name not in sizes}
        said = " ".join(f"{name}={number}" for name, number in same.items())
        return f"{op.name} {self.spec.dtype} {said}" + f", grid {self.grid}" * self.blocks_meet

    def run(self) -> Report:
        """Raises a Finding, SourceError or UsageError."""
        memory = GlobalMemory()
        one = self.bound(Arguments(memory))
        resident = self.form.together > 0
        return launch(one.made, one.values, memory, one.grid, one.dims, one.shared_bytes, resident=resident)

    def bound(self, bound: Arguments, of_rank: str = "") -> Launching:
        """With its arguments in memory. `of_rank`: behind the names of what one rank alone has."""
        spec, form = self.spec, self.form
        values: list[Any] = []
        for param in spec.params:
            if not param.dims:
                kind = np.int32 if param.dtype == "i32" else np.float32
                values.append(np.array([self.scalars[param.name]], kind))
                continue
            array = self.arrays[param.name]
            step = ALIGNMENT if param.name in spec.aligned else array.itemsize
            unit = 0 if param.name in spec.contiguous else step
            name = param.name if param.name in spec.op_spec.peers else param.name + of_rank
            values += bound.array(name, array, align=step, unit=unit)
            bound.known[id(array)].late = param.name not in spec.op_spec.pdl_reads
        for made in form.maps:
            said = TensorMap(self.arrays[made.array], made.box, made.swizzle)
            values.append(bound.tensor_map(made.array, said, ALIGNMENT))
        made = of_text(self.kernel, spec.symbol) if isinstance(self.kernel, str) else of_traced(self.kernel)
        return Launching(made, values, self.grid, form.block, form.shared_bytes)


def launch_together(
    launches: Sequence[EntryLaunch], *more: Sequence[EntryLaunch], late: tuple[int, int] | None = None,
    gives_up: bool = False,
) -> list[Report]:  # fmt: skip
    """Runs a launch of each rank, all at the same time, and then `more` of them. What all ranks reach is one array, of
    which each has a view. `late`, `gives_up`: see `launch_ranks`. Raises as `EntryLaunch.run`."""
    memory = GlobalMemory()
    bound = Arguments(memory)
    made = list[list[Launching]]()
    for step in (launches, *more):
        made.append([])
        for rank, one in enumerate(step):
            shared = {name: launches[0].arrays[name] for name in one.spec.op_spec.peers}
            made[-1].append(replace(one, arrays={**one.arrays, **shared}).bound(bound, f" of rank {rank}"))
            for array in shared.values():
                memory.share(bound.known[id(array)])
    return launch_ranks(made, memory, late, gives_up=gives_up)
