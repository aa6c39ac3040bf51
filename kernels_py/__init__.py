"""The kernels written in cuTile Python, exported to Tile IR bytecode per entry."""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import json
import tokenize
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, cast

from toolchain.artifact import Artifact, tile_ir
from toolchain.entry import ALIGNMENT, ITEMSIZE, EntrySpec, Param, load_entries
from toolchain.errors import SourceError
from toolchain.targets import BYTECODE
from toolchain.tuned import put_first

HERE = Path(__file__).parent
TF32 = "TF32"  # the last constant of kernels that multiply matrices: whether their inputs are rounded to tf32


class PythonSource:
    """Source `py`: an entry's bytecode is its kernel exported with the entry's dtype and constants."""

    name = "py"

    def entries(self) -> list[EntrySpec]:
        return put_first(load_entries(HERE / "entries.toml", self.name), self.name)

    def written(self, spec: EntrySpec) -> dict[str, str]:
        """What an entry's kernel is written in: its definition and, as `pair.products`, those that it uses, here and in
        the files beside, less comments. Another kernel of the same file is not part of it. Raises SourceError if there
        is none."""
        name = spec.kernel or spec.op
        found: dict[str, str] = {}
        left = [(_module_of(spec), name)]
        while left:
            module, name = left.pop()
            node = _definitions(module).get(name)
            if isinstance(node, ast.ImportFrom):  # from beside
                used = [alias for alias in node.names if (alias.asname or alias.name) == name]
                left += [(str(node.module), alias.name) for alias in used]
            elif node is not None and f"{module}.{name}" not in found:
                found[f"{module}.{name}"] = _segment(module, node)
                left += [(module, inner.id) for inner in ast.walk(node) if isinstance(inner, ast.Name)]
        return found

    def artifact(self, spec: EntrySpec, version: str = BYTECODE) -> Artifact:
        return tile_ir(self.bytecode(spec, version), version)

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes:
        """Tile IR bytecode of one entry, without debug information: no path is in it. Raises SourceError."""
        import cuda.tile as ct
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

        from toolchain.tileir.bytecode import read, write
        from toolchain.tileir.bytecode.writer import parse_version
        from toolchain.tileir.specialize import finish

        name, file = spec.kernel or spec.op, _module_of(spec)
        kernel: Any = getattr(importlib.import_module(f"{__name__}.{file}"), name)
        taken = _constants(file, name, spec)
        constants: list[Any] = list(spec.constants.values())
        if TF32 in taken:
            constants.append(spec.dtype == "tf32")
        signature = KernelSignature(
            [*(_constraint(p, spec) for p in spec.params), *constants],
            CallingConvention.cutile_python_v2(),
            symbol=spec.symbol,
        )
        out = io.BytesIO()
        try:
            export_kernel(kernel, [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE)
        except ct.TileError as error:
            raise SourceError(f"{HERE.name}/{file}.py: {spec.symbol}: {error}") from error
        made = read(out.getvalue(), name=spec.symbol)
        # Both sources get hints and sizes from us: cuTile refuses some hints that the compiler takes.
        finish(made, spec, parse_version(version))
        return write(made, version)

    def fingerprint(self, spec: EntrySpec) -> str:
        """Changes whenever the bytecode may: the kernels, the entry, cuTile, and what rewrites its output."""
        digest = hashlib.sha256(json.dumps(spec.to_json()).encode())
        digest.update(repr(spec.params).encode())
        digest.update(installed_version("cuda-tile").encode())
        rewriter = sorted((HERE.parent / "toolchain" / "tileir").rglob("*.py"))
        for path in [*sorted(HERE.glob("*.py")), *rewriter]:
            digest.update(path.read_bytes())
        return digest.hexdigest()


def _constants(module: str, name: str, spec: EntrySpec) -> list[str]:
    """The names of a kernel's constants. Raises SourceError if an entry has others or another order: they are passed by
    position. A tuned entry of an earlier version of the kernel may."""
    kernel = _definitions(module)[name]
    assert isinstance(kernel, ast.FunctionDef)
    taken = [argument.arg for argument in kernel.args.args][len(spec.params) :]
    wanted = [constant for constant in taken if constant != TF32]
    if wanted != list(spec.constants):
        raise SourceError(
            f"{HERE.name}/{module}.py: {name} takes the constants {', '.join(wanted)}; "
            f"{spec.symbol} has {', '.join(spec.constants)}",
            hint="an entry that was tuned for an earlier kernel has to be tuned anew: docs/tuning.md",
        )
    return taken


def _module_of(spec: EntrySpec) -> str:
    """The file that defines an entry's kernel. Raises SourceError where there is none, or more than one."""
    name = spec.kernel or spec.op
    found = [path.stem for path in sorted(HERE.glob("*.py")) if name in _kernels(path.stem)]
    if not found:
        raise SourceError(f"{HERE.name}: {spec.symbol}: no file here defines a kernel {name}")
    if len(found) > 1:
        raise SourceError(f"{HERE.name}: {spec.symbol}: kernel {name} is defined in each of {', '.join(found)}")
    return found[0]


def _kernels(module: str) -> set[str]:
    """The kernels that a file defines: functions with the decorator `ct.kernel`."""
    nodes = _definitions(module).items()
    return {
        name
        for name, node in nodes
        if isinstance(node, ast.FunctionDef) and any("ct.kernel" in ast.unparse(at) for at in node.decorator_list)
    }


def _definitions(module: str) -> Mapping[str, ast.stmt]:
    """What a file's names stand for, but for what it imports from elsewhere: functions, constants, and the imports of
    what stands beside it."""
    return _defined((HERE / f"{module}.py").read_text())


@cache
def _defined(text: str) -> Mapping[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef(name=name):
                found[name] = node
            case ast.Assign() | ast.AnnAssign():
                stored = [at.id for at in ast.walk(node) if isinstance(at, ast.Name) and isinstance(at.ctx, ast.Store)]
                found |= dict.fromkeys(stored, node)
            case ast.ImportFrom(level=1, module=None):  # whose functions would not be found by their names
                raise SourceError(f"{HERE.name}: line {node.lineno} imports a whole file: {ast.unparse(node)}")
            case ast.ImportFrom(level=1, names=names):
                found |= {alias.asname or alias.name: node for alias in names}
            case _:
                pass
    return found


def _segment(module: str, node: ast.stmt) -> str:
    """A definition's lines, those of its decorators too, without what only readers read: docstring and comments."""
    text = (HERE / f"{module}.py").read_text()
    lines = dict(enumerate(text.splitlines(), 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line] = lines[line][:column].rstrip()
    match node:
        case ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as docstring, *_]):
            for line in range(docstring.lineno, cast(int, docstring.end_lineno) + 1):
                del lines[line]
        case _:
            pass
    first = node.decorator_list[0] if isinstance(node, ast.FunctionDef) and node.decorator_list else node
    within = range(first.lineno, cast(int, node.end_lineno) + 1)
    return "\n".join(lines[line] for line in within if lines.get(line, "").strip())


def _constraint(param: Param, spec: EntrySpec) -> Any:
    """What the compiler may take for granted of an argument."""
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint, ScalarConstraint

    dtypes = {"f32": ct.float32, "f16": ct.float16, "bf16": ct.bfloat16, "i32": ct.int32}
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
        base_addr_divisible_by=ALIGNMENT if aligned or param.name in spec.dense else 1,
    )


SOURCE = PythonSource()
