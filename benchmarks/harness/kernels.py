"""Chooses the kernels of our contenders: those of each source in the measured bundle, and in the bundles that it is
compared with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.cells import borrows_from
from toolchain.bundles.bundle import Bundle
from toolchain.contract.sources import best_of, registered
from toolchain.errors import UsageError
from toolchain.runtime import Executor, Launcher

from .harness import Contender, Maker


@dataclass(frozen=True)
class Kernels:
    """The kernels of one source of a bundle. `against`: the bundle's name, empty for the bundle that is measured."""

    bundle: Bundle
    source: str
    against: str = ""

    @property
    def name(self) -> str:
        return f"{self.against} {self.source}".strip()

    def launcher(self, executor: Executor, *, model: bool = False) -> Launcher:
        """For a `model`, ops that the source lacks run with the kernels of the source that it borrows from."""
        return Launcher(self.bundle, self.source, executor, borrows_from=borrows_from(self.source) if model else "")

    def maker(self, build: Callable[[Kernels], Contender]) -> Maker:
        """A contender with these kernels. Kernels of another bundle are only compared with ours of the same source."""
        made = functools.partial(build, self)
        return Maker(self.name, "against", made, beside=self.source) if self.against else Maker(self.name, "ours", made)


def choose(bundle: Bundle, others: Mapping[str, Bundle], sources: Sequence[str]) -> list[Kernels]:
    """The kernels of a run: those of the bundle, then those of each bundle that it is compared with. `sources`: none
    means all that have every op, and the virtual ones if the bundle says which source is the fastest for what. Raises
    UsageError if a source is not in the bundle, or if another bundle has none of them."""
    known = [*bundle.sources, *(name for name, each in registered().items() if each.best_of)]
    if unknown := [source for source in sources if source not in known]:
        raise UsageError(f"{bundle.root} has no source {', '.join(unknown)}")
    whole = [source for source in known if not (borrows_from(source) or (best_of(source) and not bundle.picks))]
    wanted = [source for source in known if source in (sources or whole)]
    found = [Kernels(bundle, source) for source in wanted]
    for name, other in others.items():
        shared = [source for source in wanted if source in other.sources or best_of(source)]
        if not shared:
            raise UsageError(f"{other.root} has no source {', '.join(wanted)} to compare {bundle.root} with")
        found += [Kernels(other, source, name) for source in shared]
    return found
