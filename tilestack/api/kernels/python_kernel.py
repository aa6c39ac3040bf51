"""PythonKernel: a function in cuTile Python, traced for the arrays that it is launched on."""

from __future__ import annotations

import inspect
import io
from collections.abc import Mapping, Sequence
from typing import Any

from toolchain.contract.artifact import tile_ir
from toolchain.contract.targets import BYTECODE
from toolchain.errors import LaunchError, SourceError, UsageError

from ..arguments.binding import Grid
from ..arguments.given import Given, arrays_of
from ..arguments.parameters import Parameter
from ..arguments.sharing import groups, where_they_lie
from ..launches import plan
from ..launches.code import Bytecode
from ..needs import packages_for
from .kernel import Entry, EntryKernel, Kernel, place
from .tracing import Arguments, Traced, as_traced, constant, constraint, is_constant, traced


class PythonKernel(Kernel):
    """A `@ct.kernel` function. It is traced once for each combination of dtypes, ranks and constants that it is
    launched with; `verify`, `disassemble`, `inspect` and `parameters` are about the last one."""

    def __init__(self, function: Any) -> None:
        """Raises UsageError if `function` is no kernel of cuTile Python."""
        with packages_for("a kernel in cuTile Python"):
            import cuda.tile as ct
        if not isinstance(function, ct.kernel):
            raise UsageError(f"{function!r} is not a kernel of cuTile Python", hint="decorate it with @ct.kernel")
        annotated: Any = vars(function)["_annotated_function"]  # cuTile has no public way to a kernel's parameters
        self._function, self.name = function, annotated.pyfunc.__name__
        self._signature: inspect.Signature = annotated.pysig
        marked = zip(self._signature.parameters, annotated.parameter_annotations, strict=True)
        self._marks: dict[str, Any] = dict(marked)
        self._constants = [name for name, mark in self._marks.items() if is_constant(mark)]
        self._entries: dict[object, Entry] = {}
        self._last: Entry | None = None
        self._plans = plan.Plans()

    @property
    def names(self) -> list[str]:
        """Its parameters that are no constants."""
        return [name for name in self._signature.parameters if name not in self._constants]

    @property
    def compiled(self) -> Entry:
        if self._last is None:
            raise UsageError(
                f"{self.name} was not traced yet: dtypes and ranks of its arrays are unknown",
                hint=f"launch it first, or k.specialize({', '.join(str(p) for p in self._signature.parameters)})",
            )
        return self._last

    @property
    def arguments(self) -> Mapping[str, Parameter | None]:
        return dict.fromkeys(self.names)

    def specialize(self, *args: Any, **constants: Any) -> EntryKernel:
        """The kernel traced for arguments such as these, without a launch: an entry of its own, as from a file. Raises
        SourceError that names the line of the kernel, and LaunchError."""
        arguments = self._arguments(*self._split(args, constants))
        return EntryKernel(self._entry(arguments, self._given(arguments)))

    def launch(self, grid: Grid | None, args: Sequence[Any], *, on: str, constants: Mapping[str, Any]) -> None:
        args, constants = self._split(args, constants)
        call = plan.read(grid, args, on, constants)
        if (repeated := self._plans.repeat(call)) is not None:
            if self._last is None or self._last.code is not repeated.code:
                self._last = next(entry for entry in self._entries.values() if entry.code is repeated.code)
            return
        arguments = self._arguments(args, constants)
        given = self._given(arguments)
        if place(on, given) is None:
            given = where_they_lie(given)
        values = [leaf.value for leaf in arguments.plain]
        self._plans.keep(call, self._entry(arguments, given).launch(grid, values, given, on))

    def __repr__(self) -> str:
        if self._last is None:
            return f"<kernel {self.name}({', '.join(self._signature.parameters)}), not traced yet>"
        return super().__repr__()

    def _split(self, args: Sequence[Any], constants: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments that are no constants, in order, and the constants by name, which may be given by position too,
        as to cuTile's own launch."""
        if unknown := [name for name in constants if name not in self._constants]:
            plain = [name for name in unknown if name in self.names]
            hint = f"{plain[0]} was given by name, but is no constant: annotate it with ct.Constant" if plain else None
            raise LaunchError(
                f"{self.name} has no constant {', '.join(unknown)}; it takes {', '.join(self.names)}", hint=hint
            )
        missing = [name for name in self._constants if name not in constants]
        if missing and len(args) == len(self.names) + len(missing):
            left = (name for name in self._signature.parameters if name not in constants)
            given = dict(zip(left, args, strict=True))
            return [given[name] for name in self.names], {**constants, **{name: given[name] for name in missing}}
        if len(args) != len(self.names):
            hint = f"constants may be given by name: {', '.join(self._constants)}" if self._constants else None
            raise LaunchError(
                f"{self.name} was given {len(args)} arguments; it takes {', '.join(self.names)}", hint=hint
            )
        if missing:
            raise LaunchError(f"{self.name}: no constant {', '.join(missing)}", hint=f"give it by name: {missing[0]}=")
        return args, constants

    def _arguments(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Arguments:
        """What a launch was given, after `_split`."""
        return Arguments({**dict(zip(self.names, args, strict=True)), **constants}, self._marks)

    def _given(self, arguments: Arguments) -> list[Given]:
        """The arrays among what is no constant."""
        plain = arguments.plain
        return arrays_of(self.name, [leaf.value for leaf in plain], [leaf.name for leaf in plain])

    def _entry(self, arguments: Arguments, given: Sequence[Given]) -> Entry:
        kinds = [traced(*each) for each in zip(arguments.plain, given, groups(given), strict=True)]
        # As it is written: 1, 1.0 and True, or 0.0 and -0.0, are equal in Python, and each makes another kernel.
        fixed = (repr(leaf.value) for leaf in arguments.leaves if leaf.constant)
        known = (*(leaf.name for leaf in arguments.leaves), *kinds, *fixed)
        if known not in self._entries:
            self._entries[known] = self._trace(arguments, kinds)
        self._last = self._entries[known]
        return self._last

    def _trace(self, arguments: Arguments, kinds: Sequence[Traced | str]) -> Entry:
        import cuda.tile as ct
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

        from toolchain.tileir import bytecode
        from toolchain.tileir.dialect import verify

        from .reading import parameters

        left = iter(kinds)
        values = arguments.nested(
            constant(leaf.value, f"{self.name}: {leaf.name}") if leaf.constant
            else constraint(next(left), kinds, f"{self.name}: {leaf.name}")
            for leaf in arguments.leaves
        )  # fmt: skip
        out = io.BytesIO()
        try:
            signature = KernelSignature(values, CallingConvention.cutile_python_v2(), symbol=self.name)
            export_kernel(
                self._function, [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE
            )  # fmt: skip
        except ct.TileError as error:
            raise SourceError(f"{self.name}: {error}") from error
        except (TypeError, ValueError) as error:  # of an annotation that does not fit the arguments
            raise LaunchError(f"{self.name}: {error}") from error
        module = bytecode.read(out.getvalue(), name=self.name)
        verify(module, filename=self.name)
        ranks = [None if kind.listed else kind.rank for kind in kinds if isinstance(kind, Traced)]
        read = parameters(module.entries[self.name], ranks, [leaf.name for leaf in arguments.plain])
        made = tuple(as_traced(p, kind) for p, kind in zip(read, kinds, strict=True))
        # Compiled without the places of operations: the same kernel in another file is the same code.
        artifact = tile_ir(bytecode.write(module, BYTECODE), BYTECODE)
        return Entry(Bytecode(artifact.payload, self.name, artifact.form, module), made, may_share=True)
