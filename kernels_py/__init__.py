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

from toolchain.entry import ALIGNMENT, ITEMSIZE, EntrySpec, Param, load_entries
from toolchain.errors import SourceError
from toolchain.targets import BYTECODE
from toolchain.tuned import put_first

HERE = Path(__file__).parent
MODULES = {  # of each kernel
    "embedding": "embedding", "embedding_rows": "embedding", "embedding_centred": "embedding",
    "embedding_centred_rows": "embedding", "gelu": "elementwise",
    "softmax": "softmax", "softmax_row": "softmax", "softmax_held": "softmax", "softmax_dense": "softmax",
    "layernorm": "layernorm", "layernorm_row": "layernorm", "layernorm_once": "layernorm",
    "layernorm_pair": "layernorm",
    "residual_layernorm": "layernorm", "residual_layernorm_four": "layernorm",
    "linear": "linear", "linear_gelu": "linear", "linear_residual": "linear", "linear_parts": "linear",
    "linear_few": "few", "linear_gelu_few": "few", "linear_residual_few": "few", "linear_parts_few": "few",
    "linear_thin": "thin", "linear_gelu_thin": "thin", "linear_residual_thin": "thin", "linear_parts_thin": "thin",
    "linear_residual_squares_few": "few", "rms_linear_gelu_few": "few",
    "linear_residual_squares_thin": "thin", "rms_linear_gelu_thin": "thin",
    "linear_residual_row": "row", "logits": "linear",
    "linear_pair": "pair", "linear_pair_twice": "pair", "linear_gelu_pair": "pair", "linear_residual_pair": "pair",
    "logits_pair": "pair",
    "linear_residual_squares": "squares", "linear_residual_squares_tile": "squares",
    "linear_residual_squares_pair": "squares", "linear_residual_squares_ones": "squares",
    "rms_linear": "rms", "rms_linear_gelu": "rms", "rms_linear_pair": "rms", "rms_linear_gelu_pair": "rms",
    "attention": "attention", "attention_anchored": "anchored",
    "decode_attention": "attention", "decode_attention_span": "attention",
    "decode_attention_thin": "decode", "decode_attention_walk": "decode", "decode_attention_whole": "decode",
    "merge_attention": "attention", "merge_attention_once": "attention", "kv_append": "kv_cache",
    "argmax_parts": "next_token", "next_token": "next_token",
}  # fmt: skip
TENSOR_CORE = frozenset({  # these take TF32
    "linear", "linear_gelu", "linear_residual", "linear_parts", "logits", "attention", "attention_anchored",
    "linear_few", "linear_gelu_few", "linear_residual_few", "linear_parts_few",
    "linear_thin", "linear_gelu_thin", "linear_residual_thin", "linear_parts_thin",
    "linear_pair", "linear_pair_twice", "linear_gelu_pair", "linear_residual_pair", "logits_pair",
    "linear_residual_squares", "linear_residual_squares_tile", "linear_residual_squares_pair",
    "linear_residual_squares_ones",
    "rms_linear", "rms_linear_gelu", "rms_linear_pair", "rms_linear_gelu_pair",
    "linear_residual_squares_few", "rms_linear_gelu_few", "linear_residual_squares_thin", "rms_linear_gelu_thin",
})  # fmt: skip
# Whose arrays have the sizes that are constants: attention then stores through the copy engine. The code of the others
# only gets longer by it.
STATIC_SIZES = frozenset({"attention"})
MAY_ALIAS = {  # in place
    (op, name) for op in ("linear_residual", "linear_residual_squares") for name in ("residual", "out")
}


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
        first = MODULES.get(name, name)
        if not (HERE / f"{first}.py").is_file() or name not in _definitions(first):
            raise SourceError(f"{HERE.name}: {spec.symbol}: there is no kernel {name} in {first}.py")
        found: dict[str, str] = {}
        left = [(first, name)]
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

    def bytecode(self, spec: EntrySpec, version: str = BYTECODE) -> bytes:
        """Tile IR bytecode of one entry, without debug information: no path is in it. Raises SourceError."""
        import cuda.tile as ct
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

        from toolchain.tileir import overlap
        from toolchain.tileir.bytecode import read, write
        from toolchain.tileir.bytecode.writer import parse_version
        from toolchain.tileir.specialize import set_hints, set_sizes

        name = spec.kernel or spec.op
        module = importlib.import_module(f"{__name__}.{MODULES[name]}")
        kernel: Any = getattr(module, name)
        _check_constants(MODULES[name], name, spec)
        constants: list[Any] = list(spec.constants.values())
        if name in TENSOR_CORE:
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
            raise SourceError(f"{HERE.name}/{MODULES[name]}.py: {spec.symbol}: {error}") from error
        made = read(out.getvalue(), name=spec.symbol)
        # cuTile has a way of its own to give hints, which refuses some that the compiler takes. Sizes are made constant
        # here, not in the signature, so that both sources do it alike.
        set_hints(made.entries[spec.symbol], spec)
        set_sizes(made.entries[spec.symbol], spec)
        overlap.settle(made.entries[spec.symbol], spec, parse_version(version))
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


def _check_constants(module: str, name: str, spec: EntrySpec) -> None:
    """Raises SourceError for constants that are not those of the kernel, in its order: they are passed by position. A
    tuned entry of an earlier version of the kernel may have others."""
    kernel = _definitions(module)[name]
    assert isinstance(kernel, ast.FunctionDef)
    taken = [argument.arg for argument in kernel.args.args][len(spec.params) :]
    wanted = [constant for constant in taken if constant != "TF32"]
    if wanted != list(spec.constants):
        raise SourceError(
            f"{HERE.name}/{module}.py: {name} takes the constants {', '.join(wanted)}; "
            f"{spec.symbol} has {', '.join(spec.constants)}",
            hint="an entry that was tuned for an earlier kernel has to be tuned anew: docs/tuning.md",
        )


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
    return ArrayConstraint(
        dtypes[storage],
        rank,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=["in place"] if (spec.op, param.name) in MAY_ALIAS else [],
        may_alias_internally=False,
        stride_constant=[None] * (rank - 1) + [1],
        stride_divisible_by=[step] * (rank - 1) + [1],
        shape_constant=[spec.constants.get(dim) for dim in param.dims] if spec.op in STATIC_SIZES else None,
        shape_divisible_by=[spec.multiples.get(dim, 1) for dim in param.dims],
        base_addr_divisible_by=ALIGNMENT if aligned or param.name in spec.dense else 1,
    )


SOURCE = PythonSource()
