"""The kernels written in cuTile Python, exported to Tile IR bytecode per entry.

Folders, each with files named as those of kernels_mlir where both have the parts: `products`; `rows`, what works row by
row; `cache`, `attention`; `eight_bits`, products of 8-bit numbers; `ranks`, what several GPUs compute together.
"""

from __future__ import annotations

import ast
import importlib
import io
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from toolchain.compiling.fingerprint import fingerprint
from toolchain.contract.artifact import Artifact, tile_ir
from toolchain.contract.entries import entries_of
from toolchain.contract.entry import ALIGNMENT, EntrySpec
from toolchain.contract.op import ITEMSIZE, Param
from toolchain.contract.targets import BYTECODE
from toolchain.errors import SourceError

HERE = Path(__file__).parent
TF32 = "TF32"  # the last constant of kernels that multiply matrices: whether their inputs are rounded to tf32


class PythonSource:
    """Source `py`: an entry's bytecode is its kernel exported with the entry's dtype and constants."""

    name = "py"

    def entries(self) -> list[EntrySpec]:
        return entries_of(self.name)

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        return tile_ir(self.bytecode(spec, version), version)

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes:
        """Tile IR bytecode of one entry, without debug information: no path is in it. Raises SourceError."""
        import cuda.tile as ct
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

        from toolchain.tileir.bytecode import read, write
        from toolchain.tileir.bytecode.writer import parse_version
        from toolchain.tileir.specialize import finish

        name, file = spec.kernel or spec.op, _file_of(spec)
        kernel: Any = getattr(_imported(file), name)
        values = {**spec.constants, TF32: spec.dtype == "tf32"}
        constants: list[Any] = [values[constant] for constant in _constants(file, name, spec)]
        signature = KernelSignature(
            [*(_constraint(p, spec) for p in spec.params), *constants],
            CallingConvention.cutile_python_v2(),
            symbol=spec.symbol,
        )
        out = io.BytesIO()
        try:
            export_kernel(kernel, [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE)
        except ct.TileError as error:
            raise SourceError(f"{_shown(file)}: {spec.symbol}: {error}") from error
        made = read(out.getvalue(), name=spec.symbol)
        # Both sources get hints and sizes from us: cuTile refuses some hints that the compiler takes.
        finish(made, spec, parse_version(version))
        return write(made, version)

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the bytecode may: kernels share functions, so all files of this folder count."""
        return fingerprint(spec, HERE.rglob("*.py"))


def _constants(file: Path, name: str, spec: EntrySpec) -> list[str]:
    """The names of a kernel's constants, in its order. Raises SourceError if an entry has others: one that was
    tuned for an earlier version of the kernel may."""
    kernel = _functions(file)[name]
    taken = [argument.arg for argument in kernel.args.args][len(spec.params) :]
    wanted = [constant for constant in taken if constant != TF32]
    if set(wanted) != set(spec.constants):
        raise SourceError(
            f"{_shown(file)}: {name} takes the constants {', '.join(wanted)}; "
            f"{spec.symbol} has {', '.join(spec.constants)}",
            hint="name the same in entries/; one that was tuned for an earlier kernel is tuned anew: docs/tuning.md",
        )
    return taken


def _file_of(spec: EntrySpec) -> Path:
    """The file that defines an entry's kernel. Raises SourceError where there is none, or more than one."""
    name = spec.kernel or spec.op
    found: list[Path] = []
    broken: SourceError | None = None
    for path in sorted(HERE.rglob("*.py")):
        try:
            if name in _kernels(path):
                found.append(path)
        except SourceError as error:  # kernels of the other files can be compiled all the same
            broken = error
    if not found:
        raise broken or SourceError(
            f"{HERE.name}: {spec.symbol}: no file here defines a kernel {name}",
            hint="a kernel has the decorator ct.kernel; `kernel` of the entry names it where it is not the op's name",
        )
    if len(found) > 1:
        files = ", ".join(map(_shown, found))
        raise SourceError(f"{HERE.name}: {spec.symbol}: kernel {name} is defined in each of {files}")
    return found[0]


def _kernels(file: Path) -> set[str]:
    """The kernels that a file defines: functions with the decorator `ct.kernel`."""
    return {
        name
        for name, node in _functions(file).items()
        if any("ct.kernel" in ast.unparse(at) for at in node.decorator_list)
    }


def _functions(file: Path) -> Mapping[str, ast.FunctionDef]:
    """The functions of a file by name. Raises SourceError with file:line:col for what is not Python."""
    try:
        return _parsed(file.read_text())
    except SyntaxError as error:
        where = f"{_shown(file)}:{error.lineno or 1}:{error.offset or 1}"
        shown = f"\n  {error.text.rstrip()}" if error.text else ""
        raise SourceError(f"{where}: error: {error.msg}{shown}") from error


@cache
def _parsed(text: str) -> Mapping[str, ast.FunctionDef]:
    """With `a = b` in a file, kernel a is kernel b: so ops whose kernels differ by a dtype alone share one."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef():
                found[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in found:
                found[name] = found[other]
            case _:
                pass
    return found


def _shown(file: Path) -> str:
    """`kernels_py/rows/gelu.py`"""
    return str(file.relative_to(HERE.parent))


def _imported(file: Path) -> ModuleType:
    """A file of this folder. Raises SourceError with file:line for one that cannot be imported."""
    try:
        return importlib.import_module(".".join((__name__, *file.relative_to(HERE).with_suffix("").parts)))
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith(__name__):
            raise  # a package that is not installed
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if HERE in Path(frame.filename).parents]
        where = f"{_shown(Path(ours[-1].filename))}:{ours[-1].lineno}"
        raise SourceError(f"{where}: error: {type(error).__name__}: {error}\n  {ours[-1].line}") from error


def _constraint(param: Param, spec: EntrySpec) -> Any:
    """What the compiler may take for granted of an argument."""
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, ScalarConstraint

    dtypes = {
        "f32": ct.float32, "f16": ct.float16, "bf16": ct.bfloat16, "f8E4M3FN": ct.float8_e4m3fn, "i8": ct.int8,
        "i32": ct.int32,
    }  # fmt: skip
    storage = param.storage(spec.dtype)
    if not param.dims:
        return ScalarConstraint(dtypes[storage])
    rank = len(param.dims)
    aligned = param.name in spec.aligned
    step = ALIGNMENT // ITEMSIZE[storage] if aligned else 1
    static = spec.op_spec.static
    return ArrayConstraint(
        dtypes[storage],
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=["in place"] if any(param.name in pair for pair in spec.op_spec.aliases) else [],
        may_alias_internally=False,
        stride_constant=[None] * (rank - 1) + [1],
        stride_divisible_by=[step] * (rank - 1) + [1],
        shape_constant=[spec.constants[dim] if dim in static else None for dim in param.dims] if static else None,
        shape_divisible_by=[spec.multiples.get(dim, 1) for dim in param.dims],
        base_addr_divisible_by=ALIGNMENT if aligned or param.name in spec.contiguous else 1,
    )


SOURCE = PythonSource()
