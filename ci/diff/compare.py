"""Compares the cubins of two bundles, entry by entry and target by target."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolchain.bundles.archive import unpack
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage, inspect_all
from toolchain.compiling.machine_code import same_machine_code
from toolchain.errors import UsageError

from .score import INSTRUCTION_BYTES, Reason, gain, reasons, rules, total

FORMAT = 1


@contextmanager
def opened(path: Path) -> Generator[Bundle]:
    """The bundle in a folder, or in an archive that `tilestack pack` wrote. Raises BundleError, UsageError."""
    if not path.exists():
        raise UsageError(f"{path}: no such bundle", hint="a bundle's folder, or the file that `tilestack pack` wrote")
    if path.is_dir():
        yield Bundle.load(path)
        return
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        yield unpack(path, Path(folder) / "bundle")


@dataclass(frozen=True)
class Pair:
    """A cubin in both bundles. `same_code`: both were compiled from the same bytecode or PTX. `reasons`: the measures
    that changed."""

    name: str
    op: str
    dtype: str
    target: str
    before: Usage
    after: Usage
    same_code: bool
    reasons: tuple[Reason, ...]

    @property
    def cell(self) -> str:
        return f"{self.name} {self.target}"

    @property
    def suspicion(self) -> float:
        return total(self.reasons)

    @property
    def gain(self) -> float:
        return gain(self.reasons)

    @property
    def suspicious(self) -> bool:
        return self.suspicion >= rules().threshold

    @property
    def better(self) -> bool:
        return not self.suspicious and self.gain >= rules().threshold

    def mix(self) -> list[tuple[str, int, int]]:
        """The instructions whose number changed, the largest change first: name, before, after."""
        one, two = self.before.mix, self.after.mix
        rows = [(name, one.get(name, 0), two.get(name, 0)) for name in sorted(one.keys() | two.keys())]
        return sorted((row for row in rows if row[1] != row[2]), key=lambda row: -abs(row[2] - row[1]))

    def to_json(self) -> dict[str, Any]:
        sides = {name: asdict(usage) for name, usage in (("before", self.before), ("after", self.after))}
        for side in sides.values():
            side["code_bytes"] = INSTRUCTION_BYTES * side["instructions"]
        return {
            "entry": self.name, "op": self.op, "dtype": self.dtype, "target": self.target,
            "suspicion": round(self.suspicion, 1), "gain": round(self.gain, 1), "same_code": self.same_code,
            "reasons": [{**asdict(reason), "points": round(reason.points, 1)} for reason in self.reasons], **sides,
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """`names`: of the two bundles; `tools` and `bytecode`: what differs in them, in words; `changed`: the cubins that
    differ, the most suspicious first; `identical`: how many have the same machine code; `only`: cells in one alone."""

    names: tuple[str, str]
    tools: tuple[str, ...]
    changed: tuple[Pair, ...]
    identical: int
    only: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def suspicious(self) -> list[Pair]:
        return [pair for pair in self.changed if pair.suspicious]

    @property
    def better(self) -> list[Pair]:
        return sorted((pair for pair in self.changed if pair.better), key=lambda pair: -pair.gain)

    @property
    def exit_code(self) -> int:
        return 1 if self.suspicious else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT, "before": self.names[0], "after": self.names[1], "differences": list(self.tools),
            "threshold": rules().threshold, "identical": self.identical,
            "suspicious": len(self.suspicious), "better": len(self.better),
            "only_before": list(self.only[0]), "only_after": list(self.only[1]),
            "changed": [pair.to_json() for pair in self.changed],
        }  # fmt: skip


def cells(bundle: Bundle, target: str | None = None) -> dict[str, tuple[BundleEntry, str]]:
    """The cubins of a bundle by `source/symbol target`, with entry and target."""
    return {
        f"{entry.spec.source}/{entry.spec.symbol} {name}": (entry, name)
        for entry in bundle.entries
        for name in entry.cubins
        if target in (None, name)
    }


def compare(
    bundles: tuple[Bundle, Bundle], names: tuple[str, str], cache: Cache, jobs: int, target: str | None = None
) -> Comparison:
    """Compares two bundles. Raises UsageError if they have no cubin of the same entry and target, and as
    `toolchain.compiling.cubin.inspect` does."""
    one, two = (cells(bundle, target) for bundle in bundles)
    both = [name for name in one if name in two]
    if not both:
        have = (
            f"{name} has cubins for {', '.join(b.targets) or 'no target'}"
            for name, b in zip(names, bundles, strict=True)
        )
        raise UsageError(
            f"no entry has a cubin in both bundles{f' for {target}' if target else ''}: {'; '.join(have)}",
            hint="compile both with the same --target, --op and --source",
        )
    # All are read, so that a damaged or missing file is not called identical because the manifests agree.
    read = ((name, (_read(bundles[0], one[name]), _read(bundles[1], two[name]))) for name in both)
    files = {name: pair for name, pair in read if pair[0] != pair[1]}
    differ = [name for name, pair in files.items() if not same_machine_code(*pair)]
    cubins = [files[name][side] for side in (0, 1) for name in differ]
    usages = list(inspect_all(cubins, cache, jobs))
    pairs = [_pair(one[name], two[name], usages[at], usages[len(differ) + at]) for at, name in enumerate(differ)]
    pairs.sort(key=lambda pair: (-pair.suspicion, pair.gain, pair.cell))
    only = (tuple(name for name in one if name not in two), tuple(name for name in two if name not in one))
    return Comparison(names, tuple(differences(*bundles)), tuple(pairs), len(both) - len(differ), only)


def _read(bundle: Bundle, cell: tuple[BundleEntry, str]) -> bytes:
    return bundle.read(cell[0].cubins[cell[1]])


def _pair(
    one: tuple[BundleEntry, str], two: tuple[BundleEntry, str], before: Sequence[Usage], after: Sequence[Usage]
) -> Pair:
    entry, target = one
    was, now = (entry_usage(usages, entry.spec.symbol) for usages in (before, after))
    spec = entry.spec
    return Pair(
        f"{spec.source}/{spec.symbol}", spec.op, spec.dtype, target, was, now,
        entry.code.sha256 == two[0].code.sha256, tuple(reasons(was, now)),
    )  # fmt: skip


def entry_usage(usages: Sequence[Usage], symbol: str) -> Usage:
    """The usage of that entry: a cubin may also have functions of its own."""
    return next((usage for usage in usages if usage.symbol == symbol), usages[0])


def differences(one: Bundle, two: Bundle) -> list[str]:
    """How the two were made differently, in words: tools, bytecode versions, ops."""
    found: list[str] = []
    for name in dict.fromkeys([*one.tools, *two.tools]):
        rows = [dict(bundle.tools.get(name, {})) for bundle in (one, two)]
        if rows[0] != rows[1]:
            was, now = (row.get("version", "none") for row in rows)
            found.append(f"{name} {was} to {now}" if was != now else f"{name} {was}: another file of this version")
    versions = [sorted({e.form.version for e in bundle.entries if e.form.version}) for bundle in (one, two)]
    if versions[0] != versions[1]:
        found.append(f"bytecode {', '.join(versions[0]) or 'none'} to {', '.join(versions[1]) or 'none'}")
    ops = [{entry.spec.op for entry in bundle.entries} for bundle in (one, two)]
    for side, missing in (("the second", ops[0] - ops[1]), ("the first", ops[1] - ops[0])):
        if missing:
            found.append(f"{side} has no {', '.join(sorted(missing))}")
    return found
