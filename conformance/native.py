"""Compares the kernels of a bundle with the open C++ tools: do both implementations of Tile IR agree?

Three checks are made for every entry. `cuda-tile-opt` must accept its text. `cuda-tile-translate` must turn that text
into the same bytes that we write, for each bytecode version in VERSIONS. And the output of `cuda-tile-optimize` for its
bytecode must still compute the right numbers in the interpreter. The tools do not know bytecode after 13.3, so they get
the kernel as compiled for 13.3, which has no waits for the previous launch. A row stands for all entries of its cell.
If the tools are absent, the row says so.

One difference in bytes is allowed, and the row says in how many entries it was found. For `allow_tma = false` of a load
or store cuTile and we write a boolean, but cuda-tile-translate writes the integer 0. Such a file must be equal to ours
after these integers are replaced by booleans. A known defect of the tools (issues.toml) is named in a row
"not run" that counts the entries it affects.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from toolchain.bundles import bundle as bundles
from toolchain.bundles.bundle import Bundle, BundleEntry, Compiled
from toolchain.contract.artifact import tile_ir
from toolchain.errors import BytecodeError, ConformanceError, TilestackError, ToolchainError
from toolchain.native.tools import NativeTools
from toolchain.pinned.issues import of_name
from toolchain.runtime import Executor

from .cases import Case
from .filters import EVERYTHING, Filter
from .result import Row
from .run import run_ops

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import ModuleOp

TARGET = "native"
VERSIONS = ("13.1", "13.3")
ABSENT = "native tools absent"
ALL = "all native checks"
OPT, TRANSLATE, OPTIMIZE = "cuda-tile-opt", "cuda-tile-translate", "cuda-tile-optimize"
ALLOW_TMA, DENSE_I1 = "allow_tma", "dense-i1"  # a hint of a load or store; a defect in toolchain/pinned/issues.toml
MODULO = "equal modulo allow_tma = false, which cuda-tile-translate writes as the integer 0, cuTile and we as a boolean"


def native_rows(
    bundle: Bundle,
    tools: NativeTools | str,
    interpreter: Callable[[], Executor],
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
    wanted: Filter = EVERYTHING,
) -> Iterator[Row]:
    """The rows of every cell. `tools`: the open tools, or a text that says why there are none. `wanted`: which cells to
    look at."""
    cells = _cells(bundle, cases, sources, dtypes, wanted)
    for row, entries in cells:
        if isinstance(tools, str):
            yield replace(row, shape=ALL, status="not run", detail=f"{ABSENT}: {tools}")
            continue
        if tools.toolchain.has(OPT):
            yield from _checked(replace(row, shape="accepted"), entries, partial(_accepted, bundle, tools))
        else:
            yield _no_tool(replace(row, shape="accepted"), tools, OPT)
        for version in VERSIONS:
            if tools.toolchain.has(TRANSLATE):
                check = partial(_same_bytes, bundle, tools, version)
                yield from _checked(replace(row, shape=f"bytecode {version}"), entries, check)
            else:
                yield _no_tool(replace(row, shape=f"bytecode {version}"), tools, TRANSLATE)
        if not tools.toolchain.has(OPTIMIZE):
            yield _no_tool(replace(row, shape="optimized"), tools, OPTIMIZE)
    if not isinstance(tools, str) and tools.toolchain.has(OPTIMIZE):
        entries = [entry for _, cell in cells for entry in cell]
        with interpreter() as executor:
            yield from _optimized(bundle, entries, tools, executor, cases, sources=sources, dtypes=dtypes, seed=seed)


def _cells(
    bundle: Bundle,
    cases: Sequence[Case],
    sources: Sequence[str],
    dtypes: Sequence[str],
    wanted: Filter,
) -> list[tuple[Row, list[BundleEntry]]]:
    """The entries of each cell, and what its rows have in common."""
    ops = {case.op for case in cases}
    cells: dict[tuple[str, str, str], list[BundleEntry]] = {}
    for entry in bundle.entries:
        spec = entry.spec
        if entry.interpretable and spec.source in sources and spec.dtype in dtypes and spec.op in ops:
            cells.setdefault((spec.op, spec.source, spec.dtype), []).append(entry)
    return [
        (Row(f"{op}-{source}-{dtype}-{TARGET}", source, op, dtype, TARGET, "native tools", "", "passed"), entries)
        for (op, source, dtype), entries in cells.items()
        if wanted.takes_cell(f"{op}-{source}-{dtype}-{TARGET}")
    ]


def cut_off_native(
    bundle: Bundle, cases: Sequence[Case], found: Sequence[Row], *, sources: Sequence[str], dtypes: Sequence[str],
    wanted: Filter = EVERYTHING, detail: str = "interrupted",
) -> list[Row]:  # fmt: skip
    """A row for each cell, for checks that did not run to their end."""
    began = {row.cell for row in found}
    return [
        replace(row, shape=f"{ALL}, the rest" if row.cell in began else ALL, status="not run", detail=detail)
        for row, _ in _cells(bundle, cases, sources, dtypes, wanted)
    ]


def _no_tool(row: Row, tools: NativeTools, name: str) -> Row:
    """The row of a check that this toolchain has no tool for: cuda-tile 13.1.3 has no optimizer, and a toolchain with
    LLVM alone has no cuda-tile tools."""
    version = tools.toolchain.cuda_tile
    whose = f"cuda-tile {version} (stack {tools.toolchain.stack})" if version else "this native toolchain, LLVM alone,"
    return replace(row, status="not run", detail=f"{whose} has no {name}")


class _NotComparableError(Exception):
    """An entry that cannot be checked; the message says why."""


class _NotInVersionError(_NotComparableError):
    """The entry has an op that this version of bytecode lacks."""


class _KnownDefectError(_NotComparableError):
    """The tools treat the entry wrongly, in a way that toolchain/pinned/issues.toml lists as their defect."""


def _checked(row: Row, entries: Sequence[BundleEntry], check: Callable[[BundleEntry], str]) -> Iterator[Row]:
    """Check each of `entries`. Yields one row for the check, which fails with the first entry that fails, and one row
    "not run" for each kind of reason why entries cannot be checked. `check` returns a remark for the row, or ""."""
    left_out: dict[type[_NotComparableError], list[str]] = {}
    remarks: list[str] = []
    outcome = row
    for entry in entries:
        try:
            remarks.append(check(entry))
        except _NotComparableError as error:
            left_out.setdefault(type(error), []).append(f"{entry.spec.symbol}: {error}")
        except ConformanceError as error:
            outcome = replace(row, status="failed", detail=f"{entry.spec.symbol}: {error}")
            break
        except TilestackError as error:
            outcome = replace(row, status="error", detail=f"{entry.spec.symbol}: {type(error).__name__}: {error}")
            break
    if outcome is not row:
        yield outcome
    elif remarks:
        counted = [f"{remarks.count(remark)} {remark}" for remark in sorted({*remarks} - {""})]
        yield replace(row, detail="; ".join((f"{len(remarks)} entries", *counted)))
    for reasons in left_out.values():
        yield replace(row, status="not run", detail=f"{len(reasons)} entries, the first {reasons[0]}")


def _module(entry: BundleEntry, bundle: Bundle) -> ModuleOp:
    from toolchain.tileir.bytecode import read
    from toolchain.tileir.passes.overlap import settle

    module = read(bundle.read(entry.bytecode), name=entry.spec.symbol)
    for op in module.entries.values():
        settle(op, entry.spec, (13, 3))
    return module


def _text(entry: BundleEntry, bundle: Bundle) -> str:
    from toolchain.tileir.text import print_module

    return print_module(_module(entry, bundle))


def _accepted(bundle: Bundle, tools: NativeTools, entry: BundleEntry) -> str:
    tools.run(OPT, ["--no-implicit-module", "k.mlir"], files={"k.mlir": _text(entry, bundle)})
    return ""


def _same_bytes(bundle: Bundle, tools: NativeTools, version: str, entry: BundleEntry) -> str:
    """Check that the tool writes our bytes. Debug information is left out: the tool's refers to the text it read."""
    from toolchain.tileir.bytecode import strip_debug, write

    module = _module(entry, bundle)
    try:
        ours = write(module, version)
    except BytecodeError as error:  # an op that is newer than this version
        raise _NotInVersionError(error.args[0]) from error
    arguments = ["k.mlir", "--mlir-to-cudatilebc", "--no-implicit-module", f"--bytecode-version={version}"]
    done = tools.run(
        TRANSLATE, [*arguments, "-o", "k.tilebc"], files={"k.mlir": _text(entry, bundle)},
        outputs=["k.tilebc"],
    )  # fmt: skip
    issue = of_name(tools.toolchain.issues, DENSE_I1) if _has_true_i1(module) else None
    try:
        theirs = strip_debug(done.files["k.tilebc"])
    except BytecodeError as error:  # the tool wrote a file that no reader accepts
        if issue:
            raise _KnownDefectError(str(issue)) from error
        raise
    if theirs == ours:
        return ""
    if issue:
        raise _KnownDefectError(str(issue))
    if _forbids_tma(module) and _booleans(theirs, version) == ours:
        return MODULO
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    raise ConformanceError(
        f"bytecode {version} differs from byte {at:#x} on: {len(ours)} bytes of ours, {len(theirs)} of "
        f"{TRANSLATE} (stack {tools.toolchain.stack})"
    )


def _has_true_i1(module: ModuleOp) -> bool:
    """True if a constant of the module has a true i1 element. A constant that is all false has the same bytes whether
    packed or not."""
    from toolchain.tileir.dialect.attrs import DenseAttr
    from toolchain.tileir.dialect.types import i1

    values = (value for op in module.walk() for value in op.properties.values() if isinstance(value, DenseAttr))
    return any(value.type.element_type == i1 and any(value.raw) for value in values)


def _forbids_tma(module: ModuleOp) -> bool:
    from toolchain.tileir.dialect.attrs import HintsAttr

    values = (value for op in module.walk() for value in op.properties.values() if isinstance(value, HintsAttr))
    return any((ALLOW_TMA, False) in pairs for hints in values for _, pairs in hints.data)


def _booleans(theirs: bytes, version: str) -> bytes:
    """The bytecode `theirs`, with each `allow_tma` that is an integer replaced by the boolean that we write."""
    from toolchain.tileir.bytecode import read, write
    from toolchain.tileir.dialect.attrs import HintsAttr

    module = read(theirs, name="k.tilebc")
    for op in module.walk():
        for name, hints in list(op.properties.items()):
            if isinstance(hints, HintsAttr):
                pairs = ((of, tuple((k, bool(v) if k == ALLOW_TMA else v) for k, v in row)) for of, row in hints.data)
                op.properties[name] = HintsAttr(tuple(pairs))
    return write(module, version)


def _optimized(
    bundle: Bundle,
    entries: Sequence[BundleEntry],
    tools: NativeTools,
    interpreter: Executor,
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
) -> Iterator[Row]:
    """The op cases in the interpreter, over bytecode that `cuda-tile-optimize` made of the bundle's."""
    from toolchain.tileir.bytecode import write

    made: list[Compiled] = []
    issue = of_name(tools.toolchain.issues, DENSE_I1)
    for entry in entries:
        spec = entry.spec
        cell, shape = f"{spec.op}-{spec.source}-{spec.dtype}-{TARGET}", f"optimized {spec.symbol}"
        row = Row(cell, spec.source, spec.op, spec.dtype, TARGET, "native tools", shape, "error")
        module = _module(entry, bundle)
        if issue and _has_true_i1(module):
            yield replace(row, status="not run", detail=str(issue))
            continue
        try:
            done = tools.run(
                OPTIMIZE,
                ["k.tilebc", "--emit-bytecode", "-o", "o.tilebc"],  # without --emit-bytecode it prints text
                files={"k.tilebc": write(module, VERSIONS[-1])},
                outputs=["o.tilebc"],
            )
        except (BytecodeError, ToolchainError) as error:
            yield replace(row, detail=str(error))
            continue
        made.append(Compiled(spec, tile_ir(done.files["o.tilebc"], VERSIONS[-1]), {}))
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        optimized = bundles.write(f"{folder}/bundle", made, tools={})
        present = [source for source in sources if source in optimized.sources]
        for row in run_ops(optimized, interpreter, cases, sources=present, dtypes=dtypes, seed=seed):
            cell = f"{row.op}-{row.source}-{row.dtype}-{TARGET}"
            yield replace(row, cell=cell, target=TARGET, shape=f"optimized {row.shape}")
