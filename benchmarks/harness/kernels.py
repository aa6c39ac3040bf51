"""Whose kernels a contender of ours launches: those of a source in the bundle that is measured, or in one that it is
compared with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolchain.bundle import Bundle
from toolchain.errors import UsageError
from toolchain.runtime import Executor, Launcher

from .harness import Contender, Maker


@dataclass(frozen=True)
class Kernels:
    """One source of a bundle. `against`: what the bundle is called, where it is not the one that is measured."""

    bundle: Bundle
    source: str
    against: str = ""

    @property
    def name(self) -> str:
        return f"{self.against} {self.source}".strip()

    def launcher(self, executor: Executor) -> Launcher:
        return Launcher(self.bundle, self.source, executor)

    def maker(self, build: Callable[[Kernels], Contender]) -> Maker:
        """A contender of them; beside ours of the same source alone, where they are of another bundle."""
        made = functools.partial(build, self)
        return Maker(self.name, "against", made, beside=self.source) if self.against else Maker(self.name, "ours", made)


def choose(bundle: Bundle, others: Mapping[str, Bundle], sources: Sequence[str]) -> list[Kernels]:
    """The kernels of a run: of the bundle, then of each that it is compared with, by name. `sources`: which; none means
    all. Raises UsageError if one is not in the bundle, or if another bundle has none of them."""
    if unknown := [source for source in sources if source not in bundle.sources]:
        raise UsageError(f"{bundle.root} has no source {', '.join(unknown)}")
    wanted = [source for source in bundle.sources if not sources or source in sources]
    found = [Kernels(bundle, source) for source in wanted]
    for name, other in others.items():
        shared = [source for source in wanted if source in other.sources]
        if not shared:
            raise UsageError(f"{other.root} has no source {', '.join(wanted)} to compare {bundle.root} with")
        found += [Kernels(other, source, name) for source in shared]
    return found
