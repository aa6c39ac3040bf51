"""Kernel sources: their interface, and finding them by their registered names.

A source is a package with an object `SOURCE`. sources.toml lists the packages by name, so that nothing here imports a
kernel, and adding a source means adding a line there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from ..errors import UsageError
from ..tables import Check, check_keys, flag, header, is_table, place, read_table, text, texts
from .artifact import Artifact
from .entry import EntrySpec
from .targets import BYTECODE


class Source(Protocol):
    """A kernel source: the type of a package's `SOURCE`."""

    name: str

    def entries(self) -> list[EntrySpec]:
        """Its entries in order of preference: a launch takes the first that fits."""
        ...

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        """The code of one entry. `version`: the version of Tile IR bytecode; a source of PTX ignores it. Raises
        SourceError."""
        ...

    def fingerprint(self, spec: EntrySpec) -> str:
        """A text that changes whenever the artifact may change. It is part of the key in the compile cache."""
        ...


@dataclass(frozen=True)
class Registered:
    """What sources.toml says of a source; see there. A virtual one has no package."""

    package: str = ""
    named_rows: bool = False
    borrows_from: str = ""
    best_of: tuple[str, ...] = ()


TABLE = Path(__file__).parent / "sources.toml"
KEYS: Mapping[str, Check] = {"package": text, "named_rows": flag, "borrows_from": text, "best_of": texts}


@functools.cache
def registered() -> Mapping[str, Registered]:
    """The registered sources by name. Raises UsageError that begins with the file and line of a wrong one."""
    return read_sources(TABLE)


def read_sources(path: Path) -> Mapping[str, Registered]:
    """The sources in a file such as sources.toml. Raises UsageError."""
    found: dict[str, Registered] = {}
    for name, row in read_table(path).items():
        if isinstance(row, str):
            found[name] = Registered(row)
            continue
        where = f"{place(path, header(name))}: {name}"
        if wanted := is_table(row):
            raise UsageError(f"{where} is {row!r}, not a package or {wanted}")
        check_keys(row, KEYS, where, tuple(KEYS))
        if ("package" in row) == ("best_of" in row):
            raise UsageError(f"{where}: it has either a package, or best_of if it is virtual")
        found[name] = Registered(
            row.get("package", ""), row.get("named_rows", False), row.get("borrows_from", ""),
            tuple(row.get("best_of", ())),
        )  # fmt: skip
    for name, source in found.items():
        if source.borrows_from and (source.borrows_from == name or source.borrows_from not in found):
            raise UsageError(
                f"{place(path, header(name))}: {name} borrows from {source.borrows_from!r}, no other source"
            )
        if unknown := [each for each in source.best_of if each not in found or found[each].best_of]:
            raise UsageError(f"{place(path, header(name))}: {name} is the best of {unknown[0]!r}, no source of kernels")
    return found


def packages() -> Mapping[str, str]:
    """The registered sources that have kernels: name to package."""
    return {name: source.package for name, source in registered().items() if source.package}


def best_of(source: str) -> tuple[str, ...]:
    """The sources that a virtual one chooses among; empty for one that has kernels."""
    known = registered().get(source)
    return known.best_of if known else ()


@functools.cache
def load_source(package: str) -> Source:
    """The kernel source in a package, by the package's name. Raises UsageError if the package is not a source."""
    try:
        return cast("Source", importlib.import_module(package).SOURCE)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise UsageError(f"no kernel source {package!r}: there is no such package") from error
    except AttributeError as error:
        raise UsageError(f"{package} is not a kernel source: it has no SOURCE") from error
