"""The kernels of a bundle against the open C++ tools: do both implementations of Tile IR say the same?

For every entry: `cuda-tile-opt` accepts its text; `cuda-tile-translate` makes of that text the very bytes that we
write, for each bytecode version in VERSIONS; and what `cuda-tile-optimize` makes of its bytecode still computes the
right numbers in the interpreter. The tools know no bytecode after 13.3: they get what a compile for that makes, without
waits for the launch before. A row stands for all entries of its cell. Where the tools are absent, it says so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from toolchain import bundle as bundles
from toolchain.bundle import Bundle, BundleEntry, Compiled
from toolchain.errors import BytecodeError, ConformanceError, TilestackError, ToolchainError
from toolchain.native.tools import NativeTools
from toolchain.runtime import Executor

from .cases import Case
from .result import Row
from .run import run_ops

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import ModuleOp

TARGET = "native"
VERSIONS = ("13.1", "13.3")
ABSENT = "native tools absent"


def native_rows(
    bundle: Bundle,
    tools: NativeTools | str,
    interpreter: Callable[[], Executor],
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
) -> Iterator[Row]:
    """The rows of every cell. `tools`: the open tools, or in words why there are none."""
    ops = {case.op for case in cases}
    cells: dict[tuple[str, str, str], list[BundleEntry]] = {}
    for entry in bundle.entries:
        spec = entry.spec
        if spec.source in sources and spec.dtype in dtypes and spec.op in ops:
            cells.setdefault((spec.op, spec.source, spec.dtype), []).append(entry)
    for (op, source, dtype), entries in cells.items():
        row = Row(f"{op}-{source}-{dtype}-{TARGET}", source, op, dtype, TARGET, "native tools", "", "passed")
        if isinstance(tools, str):
            yield replace(row, shape="all native checks", status="not run", detail=f"{ABSENT}: {tools}")
            continue
        yield from _checked(replace(row, shape="accepted"), entries, partial(_accepted, bundle, tools))
        for version in VERSIONS:
            check = partial(_same_bytes, bundle, tools, version)
            yield from _checked(replace(row, shape=f"bytecode {version}"), entries, check)
    if not isinstance(tools, str):
        entries = [entry for cell in cells.values() for entry in cell]
        yield from _optimized(bundle, entries, tools, interpreter(), cases, sources=sources, dtypes=dtypes, seed=seed)


class _NotInVersionError(Exception):
    """The entry has an op that this version of bytecode has not."""


def _checked(row: Row, entries: Sequence[BundleEntry], check: Callable[[BundleEntry], None]) -> Iterator[Row]:
    """The row of a check of each of `entries`, of which the first that fails decides; and one of those that cannot be
    checked, if there are any."""
    left_out: list[str] = []
    outcome = row
    for entry in entries:
        try:
            check(entry)
        except _NotInVersionError as error:
            left_out.append(f"{entry.spec.symbol}: {error}")
        except ConformanceError as error:
            outcome = replace(row, status="failed", detail=f"{entry.spec.symbol}: {error}")
            break
        except TilestackError as error:
            outcome = replace(row, status="error", detail=f"{entry.spec.symbol}: {type(error).__name__}: {error}")
            break
    if outcome is not row:
        yield outcome
    elif len(left_out) < len(entries):
        yield replace(row, detail=f"{len(entries) - len(left_out)} entries")
    if left_out:
        yield replace(row, status="not run", detail=f"{len(left_out)} entries, the first {left_out[0]}")


def _module(entry: BundleEntry, bundle: Bundle) -> ModuleOp:
    from toolchain.tileir.bytecode import read
    from toolchain.tileir.overlap import settle

    module = read(bundle.read(entry.bytecode), name=entry.spec.symbol)
    for op in module.entries.values():
        settle(op, entry.spec, (13, 3))
    return module


def _text(entry: BundleEntry, bundle: Bundle) -> str:
    from toolchain.tileir.text import print_module

    return print_module(_module(entry, bundle))


def _accepted(bundle: Bundle, tools: NativeTools, entry: BundleEntry) -> None:
    tools.run("cuda-tile-opt", ["--no-implicit-module", "k.mlir"], files={"k.mlir": _text(entry, bundle)})


def _same_bytes(bundle: Bundle, tools: NativeTools, version: str, entry: BundleEntry) -> None:
    """Compared without debug information: the C++ tool's names places in the text that it was given."""
    from toolchain.tileir.bytecode import strip_debug, write

    try:
        ours = write(_module(entry, bundle), version)
    except BytecodeError as error:  # an op that is newer than this version
        raise _NotInVersionError(error.args[0]) from error
    arguments = ["k.mlir", "--mlir-to-cudatilebc", "--no-implicit-module", f"--bytecode-version={version}"]
    done = tools.run(
        "cuda-tile-translate", [*arguments, "-o", "k.tilebc"], files={"k.mlir": _text(entry, bundle)},
        outputs=["k.tilebc"],
    )  # fmt: skip
    theirs = strip_debug(done.files["k.tilebc"])
    if theirs != ours:
        at = next(
            (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )
        raise ConformanceError(
            f"bytecode {version} differs from byte {at:#x} on: {len(ours)} bytes of ours, {len(theirs)} of "
            f"cuda-tile-translate (stack {tools.toolchain.stack})"
        )


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
    for entry in entries:
        spec = entry.spec
        try:
            files = {"k.tilebc": write(_module(entry, bundle), VERSIONS[-1])}
            done = tools.run("cuda-tile-optimize", ["k.tilebc", "-o", "o.tilebc"], files=files, outputs=["o.tilebc"])
        except (BytecodeError, ToolchainError) as error:
            cell, shape = f"{spec.op}-{spec.source}-{spec.dtype}-{TARGET}", f"optimized {spec.symbol}"
            outcome = ("native tools", shape, "error")
            yield Row(cell, spec.source, spec.op, spec.dtype, TARGET, *outcome, detail=str(error))
            continue
        made.append(Compiled(spec, done.files["o.tilebc"], VERSIONS[-1], {}))
    with tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        optimized = bundles.write(f"{folder}/bundle", made, tools={})
        present = [source for source in sources if source in optimized.sources]
        for row in run_ops(optimized, interpreter, cases, sources=present, dtypes=dtypes, seed=seed):
            cell = f"{row.op}-{row.source}-{row.dtype}-{TARGET}"
            yield replace(row, cell=cell, target=TARGET, shape=f"optimized {row.shape}")
