"""Kernel sources: their interface, and finding them by their registered names.

A source is a package with an object `SOURCE`. sources.toml lists the packages by name, so that nothing here imports a
kernel, and adding a source means adding a line there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from .artifact import Artifact
from .entry import EntrySpec
from .errors import UsageError
from .tables import read_table
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


@functools.cache
def packages() -> Mapping[str, str]:
    """The registered sources: name to package."""
    return {name: str(package) for name, package in read_table(Path(__file__).parent / "sources.toml").items()}


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
