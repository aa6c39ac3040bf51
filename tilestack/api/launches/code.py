"""The code of an entry: its bytecode or PTX, and its cubin for a GPU. A bundle holds cubins; those of a file or of a
traced function are compiled here when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from toolchain.caching.cache import Cache
from toolchain.contract.artifact import Form
from toolchain.contract.targets import targets
from toolchain.errors import BundleError, NotInterpretable, ToolchainError
from toolchain.pinned.tools import pinned_fingerprint, tool

from ..needs import packages_for, shown_if_long

if TYPE_CHECKING:
    from toolchain.bundles.bundle import Bundle, BundleEntry
    from toolchain.compiling.cubin import Usage
    from toolchain.runtime.driver import GPU
    from toolchain.tileir.dialect.control import ModuleOp
    from toolchain.tileir.interpreter import Prepared

NO_COMPILER = (
    'compile it where there is one, with `tilestack compile`, and load the entry of that bundle: ts.load("DIR", '
    "entry=...); a compile cache may be shared too, see docs/cache.md"
)


class Code(Protocol):
    """`symbol`: the entry's name in it. `form`: how it is launched."""

    @property
    def symbol(self) -> str: ...

    @property
    def form(self) -> Form: ...

    def stored(self) -> bytes:
        """Its bytecode or PTX."""
        ...

    def module(self) -> ModuleOp:
        """Its Tile IR. Raises NotInterpretable for PTX."""
        ...

    def prepared(self) -> Prepared:
        """It ready for the interpreter. Raises NotInterpretable for PTX."""
        ...

    def run_threads(
        self, arrays: Mapping[str, np.ndarray[Any, Any]], numbers: Mapping[str, float], grid: tuple[int, int, int]
    ) -> None:
        """Runs PTX on a CPU, thread by thread, by the kernel that it was made of. Raises NotInterpretable where that
        is not there."""
        ...

    def target_for(self, gpu: GPU) -> str:
        """The target whose cubin runs on a GPU. Raises WrongTarget."""
        ...

    def cubin(self, target: str) -> bytes:
        """Its cubin for a target. Raises ToolchainError where it is not compiled and cannot be."""
        ...


@dataclass(eq=False)
class Bytecode:
    """Tile IR bytecode. `parsed`: the module that it was made from, whose operations know their places."""

    payload: bytes
    symbol: str
    form: Form
    parsed: ModuleOp
    _cubins: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def stored(self) -> bytes:
        return self.payload

    def module(self) -> ModuleOp:
        return self.parsed

    @cached_property
    def _prepared(self) -> Prepared:
        from toolchain.tileir.interpreter import Prepared

        return Prepared(self.parsed)

    def prepared(self) -> Prepared:
        return self._prepared

    def run_threads(
        self, arrays: Mapping[str, np.ndarray[Any, Any]], numbers: Mapping[str, float], grid: tuple[int, int, int]
    ) -> None:
        del arrays, numbers, grid
        raise NotInterpretable(f"{self.symbol} is Tile IR: it has no threads")

    def target_for(self, gpu: GPU) -> str:
        from toolchain.runtime.driver import choose_target

        return choose_target(gpu, targets(), self.symbol)

    def cubin(self, target: str) -> bytes:
        if target not in self._cubins:
            self._cubins[target] = self._compiled(target)
        return self._cubins[target]

    def _compiled(self, target: str) -> bytes:
        from toolchain.compiling import pipeline, stages

        pipeline.check_targets([targets()[target]], self.form.version)
        # What the pipeline has compiled is found, also where no compiler is installed.
        name = stages.cubin_key("tile-ir", self.payload, pinned_fingerprint("tileiras"), target)
        cache = Cache.configured()

        def compiled() -> bytes:
            try:
                tool("tileiras")
            except ToolchainError as error:
                raise ToolchainError(
                    f"{self.symbol} is not compiled for {target}, and there is no compiler here: {error.args[0]}",
                    hint=NO_COMPILER,
                ) from error
            return stages.assemble(self.payload, target)

        with shown_if_long(f"compiling {self.symbol} for {target}"):
            return cache.get_or_make(name, compiled)


@dataclass(eq=False)
class Bundled:
    """An entry of a bundle."""

    bundle: Bundle
    entry: BundleEntry

    @property
    def symbol(self) -> str:
        return self.entry.spec.symbol

    @property
    def form(self) -> Form:
        return self.entry.form

    def stored(self) -> bytes:
        return self.bundle.read(self.entry.code)

    def module(self) -> ModuleOp:
        with packages_for("reading Tile IR"):
            from toolchain.tileir import bytecode

        return bytecode.read(self.bundle.read(self.entry.bytecode), name=self.symbol)

    def prepared(self) -> Prepared:
        with packages_for("the interpreter"):
            from toolchain.tileir import interpreter

        return interpreter.prepare(self.bundle.read(self.entry.bytecode))

    def run_threads(
        self, arrays: Mapping[str, np.ndarray[Any, Any]], numbers: Mapping[str, float], grid: tuple[int, int, int]
    ) -> None:
        if self.entry.ir is None:
            raise NotInterpretable(
                f"{self.symbol} is {self.form.kind}, and the bundle has no kernel that it was made of",
                hint="run it on a GPU",
            )
        with packages_for("the executor of CuTe kernels"):
            from toolchain.cute.executor.launches.entry import EntryLaunch
        kernel = self.bundle.read(self.entry.ir).decode()
        EntryLaunch(kernel, self.entry.spec, self.form, arrays, numbers, grid).run()

    def target_for(self, gpu: GPU) -> str:
        from toolchain.runtime.driver import choose_target

        return choose_target(gpu, self.entry.cubins, self.symbol)

    def cubin(self, target: str) -> bytes:
        if target not in self.entry.cubins:
            raise BundleError(
                f"{self.bundle.root} has no cubin of {self.symbol} for {target}; it has "
                f"{', '.join(self.entry.cubins) or 'bytecode alone'}",
                hint=f"compile the bundle again with --target {target}",
            )
        return self.bundle.read(self.entry.cubins[target])


def verify(code: Code) -> None:
    """Raises SourceError if the compiler would refuse it, and NotInterpretable for PTX."""
    module = code.module()
    from toolchain.tileir.dialect.verify import verify as check

    check(module, filename=code.symbol)


def text(code: Code) -> str:
    """Its Tile IR as text."""
    module = code.module()
    from toolchain.tileir.text import print_module

    return print_module(module)


def usage(code: Code, target: str) -> Usage:
    """What its cubin for a target uses. Raises ToolchainError."""
    from toolchain.compiling.cubin import inspect_all

    (found,) = inspect_all([code.cubin(target)], Cache.configured(), 1)
    return next(one for one in found if one.symbol == code.symbol)
