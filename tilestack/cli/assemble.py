"""`assemble`: a kernel of Tile IR, or an entry of a kernel source, in any of its forms."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolchain.contract.targets import BYTECODE
from toolchain.errors import UsageError
from toolchain.files import write_whole

from .common.modules import load
from .common.options import SOURCES, STREAM, command, emit, source_name

if TYPE_CHECKING:
    from toolchain.compiling.emit import Form
    from toolchain.contract.artifact import Artifact
    from toolchain.tileir.dialect.control import ModuleOp

FORMS = ("mlir", "bytecode", "ptx", "cubin", "sass")
EXAMPLES = """\
  tilestack assemble kernels_mlir/gelu.mlir -o gelu.tilebc
  tilestack assemble kernels_mlir/gelu.mlir --target sm_90 -o gelu.cubin
  tilestack assemble kernels_mlir/gelu.mlir --target sm_90 --emit sass          the machine code
  tilestack assemble kernels_mlir/gelu.mlir --target sm_90 --emit sass --dry-run     the commands that make it
  tilestack assemble --entry linear_128x128x64_bf16 -o linear.tilebc      an entry of kernels_mlir
"""


def add(commands: Any) -> None:
    made = command(
        commands, "assemble", assemble_, "turn Tile IR text into bytecode, a cubin or machine code", EXAMPLES
    )
    made.add_argument("file", type=Path, nargs="?", help=".mlir, or .tilebc to compile it; - for standard input")
    made.add_argument("--entry", metavar="SYMBOL", help="an entry of a kernel source instead of a file")
    made.add_argument("--source", choices=list(SOURCES), default="mlir", help="the source of --entry (default mlir)")
    made.add_argument("--target", metavar="SM", help="compile for this target")
    made.add_argument(
        "--emit", choices=FORMS,
        help="mlir: the composed text; ptx: of a source that writes PTX; sass: machine code as text (default bytecode, "
        "with --target cubin)",
    )  # fmt: skip
    made.add_argument("--bytecode", default=BYTECODE, metavar="VERSION", help=f"bytecode version (default {BYTECODE})")
    made.add_argument("--debug-info", action="store_true", help="say where operations come from: files and lines")
    made.add_argument("--save-temps", type=Path, metavar="DIR", help="keep what is made on the way in this folder")
    made.add_argument("-v", "--verbose", action="store_true", help="show the commands that are run, on standard error")
    made.add_argument("--dry-run", action="store_true", help="print these commands, and run and write nothing")
    made.add_argument("-o", "--output", type=Path, help="default: standard output")


def assemble_(args: argparse.Namespace) -> int:
    from toolchain.compiling.emit import COMPILED, check_form

    if (args.file is None) == (args.entry is None):
        raise UsageError("name either a file or an --entry")
    if args.debug_info and (args.target is not None or args.emit in COMPILED):
        raise UsageError("--debug-info is for bytecode and text: a cubin is made without it", hint="leave out --target")
    artifact, composed = _entry(args) if args.entry is not None else (_file(args), None)
    kernel = _Kernel(args, artifact, composed)
    form = args.emit or ("cubin" if args.target else "bytecode" if artifact.form.kind == "tile-ir" else "ptx")
    check_form(form, args.target, artifact, kernel.name)
    if args.target is not None:
        _compiled(kernel, form)
    elif args.dry_run:
        print(kernel.own_command(form, args.output))
    else:
        kernel.keep()
        emit(args.output, kernel.text() if form == "mlir" else kernel.payload())
    return 0


def _compiled(kernel: _Kernel, form: Form) -> None:
    from toolchain.compiling import pipeline
    from toolchain.compiling.emit import Compilation
    from toolchain.contract import targets

    args = kernel.args
    chosen = targets.select([str(args.target)])
    if len(chosen) > 1:
        raise UsageError(f"--target {args.target}: one cubin is for one target", hint="tilestack compile makes many")
    pipeline.check_targets(chosen, args.bytecode)
    say = partial(print, file=sys.stderr, flush=True) if args.verbose else _nothing
    made = Compilation(kernel.artifact, chosen[0].name, kernel.stem, say)
    if args.dry_run:
        folder = args.save_temps or Path()
        own: Form = "bytecode" if kernel.is_tile_ir else "ptx"
        print(kernel.own_command(own, folder / kernel.file), *made.commands(form, folder), sep="\n")
        return
    kernel.keep()
    emit(args.output, made.run(form, args.save_temps))


def _nothing(_: str) -> None:
    """Shows no command."""


def _file(args: argparse.Namespace) -> Artifact:
    from toolchain.contract.artifact import tile_ir
    from toolchain.tileir import bytecode

    return tile_ir(bytecode.write(load(args.file), args.bytecode, debug_info=args.debug_info), args.bytecode)


def _entry(args: argparse.Namespace) -> tuple[Artifact, Callable[[], ModuleOp] | None]:
    """The artifact of an entry, and where its source composes text, what makes its module."""
    from toolchain.contract.sources import load_source

    source = load_source(SOURCES[args.source])
    specs = {spec.symbol: spec for spec in source.entries()}
    if args.entry not in specs:
        raise UsageError(f"source {args.source} has no entry {args.entry!r}", hint="tilestack matrix list")
    artifact = source.artifact(specs[args.entry], args.bytecode)
    compose = getattr(source, "module", None)
    if args.debug_info and compose is None:
        raise UsageError(f"--debug-info: the entries of source {args.source} do not say where their operations stand")
    return artifact, partial(compose, specs[args.entry], args.bytecode) if compose else None


class _Kernel:
    """What is assembled. `composed`: makes the module of an entry, with the names that its source gives the values;
    bytecode has none."""

    def __init__(
        self, args: argparse.Namespace, artifact: Artifact, composed: Callable[[], ModuleOp] | None
    ) -> None:  # fmt: skip
        from toolchain.contract.artifact import SUFFIXES

        self.args, self.artifact, self._composed = args, artifact, composed
        self.is_tile_ir = artifact.form.kind == "tile-ir"
        self.name = args.entry or source_name(args.file)
        self.stem = args.entry or ("kernel" if args.file == STREAM else args.file.stem)
        self.file = f"{self.stem}.{SUFFIXES[artifact.form.kind]}"

    def text(self) -> bytes:
        """Its Tile IR text."""
        from toolchain.tileir import bytecode, text
        from toolchain.tileir.dialect.debug import attach_all

        module = self._composed() if self._composed else bytecode.read(self.artifact.payload, name=self.name)
        if self.args.debug_info:
            attach_all(module)
        return text.print_module(module, locations=self.args.debug_info).encode()

    def payload(self) -> bytes:
        """Its bytecode or PTX, with debug information where that is asked for."""
        from toolchain.tileir import bytecode

        if self.args.debug_info and self._composed:
            return bytecode.write(self._composed(), self.args.bytecode, debug_info=True)
        return self.artifact.payload

    def keep(self) -> None:
        """With --save-temps, writes the text of Tile IR and the bytecode, or the PTX. The rest is kept as it is
        made."""
        folder = self.args.save_temps
        if folder is None:
            return
        files = {self.file: self.payload(), **({f"{self.stem}.mlir": self.text()} if self.is_tile_ir else {})}
        for file, data in files.items():
            try:
                write_whole(folder / file, data, parents=True)
            except OSError as error:
                why = error.strerror or error
                raise UsageError(f"--save-temps {folder}: {file} cannot be written: {why}") from error

    def own_command(self, form: Form, output: Path | None) -> str:
        """Our own command that makes its text, bytecode or PTX."""
        args = self.args
        which = ["--entry", args.entry, "--source", args.source] if args.entry else [str(args.file)]
        words = ["tilestack", "assemble", *which, "--emit", form, "--bytecode", args.bytecode]
        words += ["--debug-info"] * args.debug_info
        return shlex.join([*words, *(["-o", str(output)] if output else [])])
