"""The GPU targets of `targets.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..tables import Check, check_keys, flag, header, integers_list, is_table, place, read_table, text, texts

BYTECODE = "13.4"  # the version that is compiled by default: the first in which kernels wait for the previous launch
TARGETS = Path(__file__).parent / "targets.toml"
KEYS: Mapping[str, Check] = {
    "compute_capability": lambda value: None if not integers_list(value) and len(value) == 2 else "[major, minor]",
    "min_bytecode": text, "exact": flag, "features": texts, "default": flag,
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A GPU target that we compile for, such as `sm_90`. The head of targets.toml explains the fields."""

    name: str
    compute_capability: tuple[int, int]
    min_bytecode: str
    exact: bool
    features: frozenset[str]
    default: bool

    def runs_on(self, compute_capability: tuple[int, int]) -> bool:
        """True if a device of this compute capability can run a cubin compiled for this target."""
        if self.exact:
            return compute_capability == self.compute_capability
        (major, minor), (own_major, own_minor) = compute_capability, self.compute_capability
        return major == own_major and minor >= own_minor


@functools.cache
def targets() -> Mapping[str, Target]:
    """All targets by name. Raises UsageError that begins with the file and line of a target that is wrong."""
    found: dict[str, Target] = {}
    for name, row in read_table(TARGETS).items():
        where = f"{place(TARGETS, header(name))}: {name}"
        if wanted := is_table(row):
            raise UsageError(f"{where} is {row!r}, not {wanted}")
        check_keys(row, KEYS, where)
        major, minor = row["compute_capability"]
        found[name] = Target(
            name, (major, minor), row["min_bytecode"], row["exact"], frozenset(row["features"]), row["default"]
        )
    return found


def select(names: Sequence[str]) -> list[Target]:
    """The targets of these names: `all` means every target, an empty list the default ones. Raises UsageError for an
    unknown name."""
    known = targets()
    if not names:
        return [target for target in known.values() if target.default]
    if list(names) == ["all"]:
        return list(known.values())
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no target {', '.join(unknown)}", hint=f"one of {', '.join(known)}, or all")
    return [known[name] for name in dict.fromkeys(names)]
