"""Kernel sources: what one is, and how it is found by its registered name.

A source is a package with an object `SOURCE`. The packages stand by name in sources.toml, so that nothing here imports
a kernel and a further source is one more line there.
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
    """A kernel source: a package has one of these as `SOURCE`."""

    name: str

    def entries(self) -> list[EntrySpec]:
        """In order of preference: a launch takes the first that fits."""
        ...

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        """The code of one entry. `version`: of Tile IR bytecode, which a source of another kind has no use for.
        Raises SourceError."""
        ...

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the artifact may: the compile cache goes by it."""
        ...


@functools.cache
def packages() -> Mapping[str, str]:
    """The registered sources: name to package."""
    return {name: str(package) for name, package in read_table(Path(__file__).parent / "sources.toml").items()}


@functools.cache
def load_source(package: str) -> Source:
    """The kernel source in a package, by the package's name. Raises UsageError if it is none."""
    try:
        return cast("Source", importlib.import_module(package).SOURCE)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise UsageError(f"no kernel source {package!r}: there is no such package") from error
    except AttributeError as error:
        raise UsageError(f"{package} is not a kernel source: it has no SOURCE") from error
