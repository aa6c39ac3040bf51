"""Compares the kernels of a bundle with the open C++ tools: do both implementations of Tile IR agree?

Three checks are made for every entry. `cuda-tile-opt` must accept its text. `cuda-tile-translate` must turn that text
into the same bytes that we write, for each bytecode version in VERSIONS. And the output of `cuda-tile-optimize` for its
bytecode must still compute the right numbers in the interpreter. A version of cuda-tile is given what it knows
(toolchain/pinned/compatibility.toml); a check that it cannot make is a row "not run" that says why. A row stands for
all entries of its cell. If the tools are absent, the row says so.

One difference in bytes is allowed, and the row says in how many entries it was found. For `allow_tma = false` of a load
or store cuTile and we write a boolean, but cuda-tile-translate writes the integer 0. Such a file must be equal to ours
after these integers are replaced by booleans. A known defect of the tools (toolchain/pinned/issues.toml) is named in a
row "not run" that counts the entries it affects.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from toolchain.bundles import bundle as bundles
from toolchain.bundles.bundle import Bundle, BundleEntry, Compiled
from toolchain.contract.artifact import Artifact, tile_ir
from toolchain.errors import BytecodeError, ConformanceError, TilestackError
from toolchain.native.tools import NativeTools
from toolchain.pinned.compatibility import table
from toolchain.pinned.issues import of_name
from toolchain.runtime import Executor

from .cases import Case
from .jobs.jobs import Job, JobContext
from .native_kernels import Kernel, KnownDefectError, NotComparableError, NotInVersionError, with_booleans
from .ops.run import OpRows
from .ops.smallest import LAUNCH, Wanted, op_jobs, smallest
from .results.cell import Cell
from .results.filters import EVERYTHING, Filter
from .results.result import CellResult

TARGET = "native"
VERSIONS = ("13.1", "13.3")
ABSENT = "native tools absent"
ALL = "all native checks"
OPT, TRANSLATE, OPTIMIZE = "cuda-tile-opt", "cuda-tile-translate", "cuda-tile-optimize"
DENSE_I1 = "dense-i1"  # a defect in toolchain/pinned/issues.toml
MODULO = "equal modulo allow_tma = false, which cuda-tile-translate writes as the integer 0, cuTile and we as a boolean"
TOOL = LAUNCH  # in units of a case's cost: about what it takes to print a kernel and to run a tool on it


@dataclass(frozen=True)
class Check:
    """A part of the comparison. `rows` makes its rows; `cost`: about how long that takes, in units of a case's cost."""

    cost: float
    rows: Callable[[], Iterator[CellResult]]


@contextmanager
def native_checks(
    bundle: Bundle,
    tools: NativeTools | str,
    interpreter: Callable[[], Executor],
    cases: Sequence[Case],
    *,
    sources: Sequence[str],
    dtypes: Sequence[str],
    seed: int,
    wanted: Filter = EVERYTHING,
    full: bool = True,
) -> Generator[Sequence[Check]]:
    """The checks of every cell, to be made in their order. `tools`: the open tools, or a text that says why there are
    none. `wanted`: which cells to look at. `full`: optimized kernels run every case, not those that `smallest` picks.
    """
    cells = _cells(bundle, cases, sources, dtypes, wanted)
    if isinstance(tools, str):
        absent = [replace(row, shape=ALL, status="not run", detail=f"{ABSENT}: {tools}") for row, _ in cells]
        yield [Check(1, partial(iter, [row])) for row in absent]
        return
    has_optimizer = tools.toolchain.has(OPTIMIZE)
    optimized = _Optimized(bundle, tools)
    steps = sum(map(tools.toolchain.has, (OPT, OPTIMIZE))) + len(VERSIONS) * tools.toolchain.has(TRANSLATE)
    checks = [
        Check(1 + TOOL * steps * len(entries), partial(_cell, row, entries, bundle, tools, optimized))
        for row, entries in cells
    ]
    if not has_optimizer:
        yield checks
        return
    with interpreter() as executor, tempfile.TemporaryDirectory(prefix="tilestack-") as folder:
        jobs = op_jobs(cases, dtypes, _runs(bundle, executor, cases, cells, full=full))
        site = partial(optimized.site, Path(folder), executor, sources, seed)
        yield [*checks, *(Check(job.cost, partial(optimized.rows, job, site)) for job in jobs)]


def _cells(
    bundle: Bundle,
    cases: Sequence[Case],
    sources: Sequence[str],
    dtypes: Sequence[str],
    wanted: Filter,
) -> list[tuple[CellResult, list[BundleEntry]]]:
    """The entries of each cell, and what its rows have in common."""
    ops = {case.op for case in cases}
    cells: dict[Cell, list[BundleEntry]] = {}
    for entry in bundle.entries:
        spec = entry.spec
        if entry.interpretable and spec.source in sources and spec.dtype in dtypes and spec.op in ops:
            cells.setdefault(Cell(spec.op, spec.source, spec.dtype, TARGET, "native tools"), []).append(entry)
    return [(cell.row("", status="passed"), entries) for cell, entries in cells.items() if wanted.takes_cell(cell.name)]


def cut_off_native(
    bundle: Bundle, cases: Sequence[Case], found: Sequence[CellResult], *,
    sources: Sequence[str], dtypes: Sequence[str], wanted: Filter = EVERYTHING, detail: str = "interrupted",
) -> list[CellResult]:  # fmt: skip
    """A row for each cell, for checks that did not run to their end."""
    began = {row.cell for row in found}
    return [
        replace(row, shape=f"{ALL}, the rest" if row.cell in began else ALL, status="not run", detail=detail)
        for row, _ in _cells(bundle, cases, sources, dtypes, wanted)
    ]


def _cell(
    row: CellResult, entries: Sequence[BundleEntry], bundle: Bundle, tools: NativeTools, optimized: _Optimized
) -> Iterator[CellResult]:
    """The rows of one cell, but for the cases that its optimized kernels run."""
    toolchain = tools.toolchain
    known = table().of_cuda_tile(toolchain.cuda_tile) if toolchain.cuda_tile else None
    kernels = [Kernel(bundle, entry, known) for entry in entries]
    versions = [version for version in VERSIONS if known is None or version in known.bytecode]
    checks = [("accepted", OPT, partial(_accepted, tools, versions[-1]))]
    checks += [(f"bytecode {version}", TRANSLATE, partial(_same_bytes, tools, version)) for version in VERSIONS]
    for shape, tool, check in checks:
        named = replace(row, shape=shape)
        if not toolchain.has(tool):
            yield _no_tool(named, tools, tool)
        elif shape.startswith("bytecode") and shape.partition(" ")[2] not in versions:
            assert known is not None
            writes = f"{_whose(tools)} writes bytecode {', '.join(known.bytecode)} alone"
            yield replace(named, status="not run", detail=writes)
        else:
            yield from _checked(named, kernels, check)
    if toolchain.has(OPTIMIZE):
        for kernel in kernels:
            yield from optimized.make(replace(row, shape=f"optimized {kernel.symbol}"), kernel, versions[-1])
    else:
        yield _no_tool(replace(row, shape="optimized"), tools, OPTIMIZE)


def _whose(tools: NativeTools) -> str:
    version = tools.toolchain.cuda_tile
    return f"cuda-tile {version} (stack {tools.toolchain.stack})" if version else "this native toolchain, LLVM alone,"


def _no_tool(row: CellResult, tools: NativeTools, name: str) -> CellResult:
    """The row of a check that this toolchain has no tool for: cuda-tile 13.1.3 has no optimizer, and a toolchain with
    LLVM alone has no cuda-tile tools."""
    return replace(row, status="not run", detail=f"{_whose(tools)} has no {name}")


def _checked(
    row: CellResult, kernels: Sequence[Kernel], check: Callable[[Kernel], Sequence[str]]
) -> Iterator[CellResult]:
    """Check each of `kernels`. Yields one row for the check, which fails with the first kernel that fails, and one row
    "not run" for each kind of reason why kernels cannot be checked. `check` returns remarks for the row."""
    left_out: dict[type[NotComparableError], list[str]] = {}
    passed, remarks = 0, Counter[str]()
    outcome = row
    for kernel in kernels:
        try:
            remarks.update([*check(kernel), *kernel.remarks])
            passed += 1
        except NotComparableError as error:
            left_out.setdefault(type(error), []).append(f"{kernel.symbol}: {error}")
        except ConformanceError as error:
            outcome = replace(row, status="failed", detail=f"{kernel.symbol}: {error}")
            break
        except TilestackError as error:
            outcome = replace(row, status="error", detail=f"{kernel.symbol}: {type(error).__name__}: {error}")
            break
    if outcome is not row:
        yield outcome
    elif passed:
        counted = [f"{count} {remark}" for remark, count in sorted(remarks.items())]
        yield replace(row, detail="; ".join((f"{passed} entries", *counted)))
    for reasons in left_out.values():
        yield replace(row, status="not run", detail=f"{len(reasons)} entries, the first {reasons[0]}")


def _accepted(tools: NativeTools, newest: str, kernel: Kernel) -> Sequence[str]:
    """Check that the tool accepts the text. `newest`: the bytecode that its version knows, whose operations it has."""
    kernel.bytecode(newest)
    tools.run(OPT, ["--no-implicit-module", "k.mlir"], files={"k.mlir": kernel.text})
    return ()


def _same_bytes(tools: NativeTools, version: str, kernel: Kernel) -> Sequence[str]:
    """Check that the tool writes our bytes. Debug information is left out: the tool's refers to the text it read."""
    from toolchain.tileir.bytecode import strip_debug

    ours = kernel.bytecode(version)
    arguments = ["k.mlir", "--mlir-to-cudatilebc", "--no-implicit-module", f"--bytecode-version={version}"]
    done = tools.run(
        TRANSLATE, [*arguments, "-o", "k.tilebc"], files={"k.mlir": kernel.text},
        outputs=["k.tilebc"],
    )  # fmt: skip
    issue = of_name(tools.toolchain.issues, DENSE_I1) if kernel.has_true_i1 else None
    try:
        theirs = strip_debug(done.files["k.tilebc"])
    except BytecodeError as error:  # the tool wrote a file that no reader accepts
        if issue:
            raise KnownDefectError(str(issue)) from error
        raise
    if theirs == ours:
        return ()
    if issue:
        raise KnownDefectError(str(issue))
    if kernel.forbids_tma and with_booleans(theirs, version) == ours:
        return (MODULO,)
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    raise ConformanceError(
        f"bytecode {version} differs from byte {at:#x} on: {len(ours)} bytes of ours, {len(theirs)} of "
        f"{TRANSLATE} (stack {tools.toolchain.stack})"
    )


class _Optimized:
    """The kernels that `cuda-tile-optimize` made, and the cases that run them in the interpreter."""

    def __init__(self, bundle: Bundle, tools: NativeTools) -> None:
        self._bundle, self._tools = bundle, tools
        self._made: dict[tuple[str, str], Artifact] = {}  # by source and symbol
        self._site: JobContext | None = None

    def make(self, row: CellResult, kernel: Kernel, version: str) -> Iterator[CellResult]:
        """Optimize a kernel. Yields a row only where there is no optimized kernel, which says why."""
        issue = of_name(self._tools.toolchain.issues, DENSE_I1)
        if issue and kernel.has_true_i1:
            yield replace(row, status="not run", detail=str(issue))
            return
        try:
            done = self._tools.run(
                OPTIMIZE,
                ["k.tilebc", "--emit-bytecode", "-o", "o.tilebc"],  # without --emit-bytecode it prints text
                files={"k.tilebc": kernel.bytecode(version)},
                outputs=["o.tilebc"],
            )
        except NotInVersionError as error:
            yield replace(row, status="not run", detail=str(error))
        except TilestackError as error:
            yield replace(row, status="error", detail=str(error))
        else:
            spec = kernel.entry.spec
            self._made[spec.source, spec.symbol] = tile_ir(done.files["o.tilebc"], version)

    def site(self, folder: Path, executor: Executor, sources: Sequence[str], seed: int) -> JobContext:
        """The bundle with what was made, of all kernels that will be: a kernel that was not optimized stays as it was,
        so that each case chooses the same entries as ever."""
        if self._site is None:
            bundle = bundles.write(folder / "bundle", [self._compiled(entry) for entry in self._bundle.entries], {})
            self._site = JobContext(bundle, executor, sources, seed, nullcontext())
        return self._site

    def _compiled(self, entry: BundleEntry) -> Compiled:
        made = self._made.get((entry.spec.source, entry.spec.symbol))
        ir = self._bundle.read(entry.ir) if entry.ir else b""
        return Compiled(entry.spec, made or Artifact(self._bundle.read(entry.code), entry.form, ir), {})

    def rows(self, job: Job, site: Callable[[], JobContext]) -> Iterator[CellResult]:
        """The rows of a case for the kernels that were optimized; the rows of `make` speak of the others."""
        assert isinstance(job.rows, OpRows)
        only = {
            (dtype, source): made
            for (dtype, source), symbols in (job.rows.only or {}).items()
            if (made := frozenset(symbol for symbol in symbols if (source, symbol) in self._made))
        }
        for row in replace(job.rows, only=only)(site()) if only else ():
            cell = Cell(row.op, row.source, row.dtype, TARGET)
            yield replace(row, cell=cell.name, target=TARGET, shape=f"optimized {row.shape}")


def _runs(
    bundle: Bundle, executor: Executor, cases: Sequence[Case],
    cells: Sequence[tuple[CellResult, Sequence[BundleEntry]]], *, full: bool,
) -> Wanted:  # fmt: skip
    """Which symbols of the cells each case is to run."""
    symbols = {
        (row.op, row.dtype, row.source): frozenset(entry.spec.symbol for entry in entries) for row, entries in cells
    }
    if full:
        return {
            (number, dtype, source): every
            for number, case in enumerate(cases) if not case.gpu_only
            for (op, dtype, source), every in symbols.items() if op == case.op and dtype in case.dtypes()
        }  # fmt: skip
    few = smallest(bundle, executor, cases, list(dict.fromkeys(source for _, _, source in symbols)))
    found = {
        (number, dtype, source): wanted & symbols.get((cases[number].op, dtype, source), frozenset())
        for (number, dtype, source), wanted in few.items()
    }
    return {key: wanted for key, wanted in found.items() if wanted}
