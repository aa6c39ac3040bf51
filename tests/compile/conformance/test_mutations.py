"""The conformance cases catch the kernel bugs that people write, and pass the kernels without them.

A bug is made in one part of the kernels' library, and runs on the interpreter in the cheapest kernel that shows it:
first the cheapest entry and case, then the next one until a case fails. The same case of the kernel as it stands must
pass. Most run in f32, whose bounds are the tightest; bugs in what only entries of 16 bits do run in bf16.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from conformance import cases
from conformance.cases import CASES, Case
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import Expected, attempt, check_op, references
from conformance.ops.smallest import cost, layouts
from conformance.results.cell import Cell
from conformance.results.result import CellResult
from kernels_mlir import SOURCE
from tests.compile.conformance.mutations import FAMILIES, MUTATIONS, UNTESTED, Mutation
from toolchain.bundles import bundle
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import ops
from toolchain.contract.targets import BYTECODE
from toolchain.errors import LaunchError, SourceError
from toolchain.runtime import Executor, Launcher, open_executor
from toolchain.runtime.launch import check_layouts
from toolchain.tileir import bytecode
from toolchain.tileir.bytecode.writer import parse_version
from toolchain.tileir.compose import Library
from toolchain.tileir.interpreter.launches import interleaving
from toolchain.tileir.specialize import specialize

ENTRIES = SOURCE.entries()
SEED = 3

# Kernels whose entries are chosen for sizes that take the interpreter half a minute. They are right for others too.
CHOSEN_BY_SIZE = ("linear_residual_squares_split_n_mma",)
MOST = 40_000_000  # multiplications: what the interpreter does in about a second


def kernel_of(spec: EntrySpec) -> str:
    return spec.kernel or spec.op


@functools.cache
def cpu() -> Executor:
    return open_executor("cpu")


@functools.cache
def entries_of(kernel: str, dtype: str) -> list[EntrySpec]:
    """A kernel's entries, one for each set of constants and conditions, even those that no size would choose."""
    found: dict[str, EntrySpec] = {}
    for spec in ENTRIES:
        if (kernel_of(spec), spec.dtype) == (kernel, dtype):
            free = replace(spec, cost=None, targets=(), hints={})
            if kernel in CHOSEN_BY_SIZE:
                free = replace(free, where=tuple(text for text in free.where if "Z" in text), sizes={})
            # Those of several targets may have the same tiles for other sizes.
            found.setdefault(repr([sorted(free.constants.items()), sorted(free.sizes.items()), free.where]), free)
    return list(found.values())


@functools.cache
def runs(kernel: str, dtype: str) -> list[tuple[EntrySpec, Case]]:
    """The kernel's entries with the cases that they take and the interpreter runs in a moment: cheap ones first."""
    specs = entries_of(kernel, dtype)
    found = [
        (spec, case)
        for case in CASES
        if specs and case.op == specs[0].op and dtype in case.dtypes() and not case.gpu_only
        if math.prod(case.dims.get(name, 1) for name in "MKN") < MOST
        for spec in specs
        if _takes(spec, case)
    ]
    return sorted(found, key=lambda run: cost(run[1]))


def _takes(spec: EntrySpec, case: Case) -> bool:
    try:
        dims, misaligned, gapped = check_layouts(spec.symbol, spec.op, spec.dtype, layouts(case, spec.dtype, cpu()))
    except LaunchError:
        return False
    return spec.unmet(dims, misaligned, gapped) is None


@functools.cache
def drawn(number: int, dtype: str) -> tuple[Inputs, Expected]:
    """A case's inputs and expected results. The case is given by its number, because it cannot be hashed."""
    inputs = make_inputs(CASES[number], dtype, SEED)
    return inputs, references(CASES[number], dtype, inputs)


class Kernels:
    """Entries made from a library, as bundles of one entry each."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.made: dict[str, bundle.Bundle] = {}
        self.details: dict[tuple[str, int], str] = {}

    def bundle(self, spec: EntrySpec) -> bundle.Bundle:
        if spec.symbol not in self.made:
            code = bytecode.write(specialize(self.library, spec, parse_version(BYTECODE)), BYTECODE)
            compiled = [bundle.Compiled(spec, tile_ir(code, BYTECODE), {})]
            self.made[spec.symbol] = bundle.write(self.folder / spec.symbol, compiled, {})
        return self.made[spec.symbol]

    def row(self, spec: EntrySpec, case: Case) -> CellResult:
        inputs, expected = drawn(CASES.index(case), spec.dtype)
        launcher = Launcher(self.bundle(spec), SOURCE.name, cpu())
        cell = Cell.on(case.op, SOURCE.name, spec.dtype, cpu())
        with np.errstate(all="ignore"):
            return attempt(cell, case.shape, check_op, case, spec.dtype, inputs, lambda: expected, launcher, cpu())

    def detail(self, spec: EntrySpec, case: Case) -> str:
        """What is wrong with a case. The same few cases catch most bugs, so each is run once."""
        key = spec.symbol, CASES.index(case)
        if key not in self.details:
            self.details[key] = self.row(spec, case).detail
        return self.details[key]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """The kernels without a bug."""
    return Kernels(SOURCE.library, tmp_path_factory.mktemp("sound"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that wait for what never comes count their turns: fewer than elsewhere show it."""
    monkeypatch.setattr(interleaving, "QUIET", 1000)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.part}: {m.bug}")
def test_the_bug_is_caught(mutation: Mutation, sound: Kernels, tmp_path: Path) -> None:
    broken = Kernels(mutation.apply(SOURCE.library), tmp_path)
    tried = runs(mutation.kernel, mutation.dtype)
    assert tried, f"no case for {mutation.kernel} in {mutation.dtype}"
    for spec, case in tried:
        try:
            row = broken.row(spec, case)
        except SourceError as error:
            pytest.fail(f"the verifier caught it, which tests nothing here: {error}")
        if row.status in ("failed", "error"):
            assert sound.detail(spec, case) == "", f"{spec.symbol} fails {case.shape} without the bug too"
            return
    pytest.fail(f"no case of {len(tried)} catches it: the last was {tried[-1][1].shape}")


def test_there_are_bugs_enough() -> None:
    assert len(MUTATIONS) >= 80
    assert len({(m.part, m.kernel, m.bug) for m in MUTATIONS}) == len(MUTATIONS)
    mlir = {name for name, op in ops().items() if not op.whole}
    assert {ops_by_kernel()[m.kernel] for m in MUTATIONS} == mlir
    assert all(m.part in SOURCE.library.written(m.kernel) for m in MUTATIONS if "!" not in m.part)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_bugs_are_in_a_module_named_as_that_of_the_cases_of_their_op(family: ModuleType) -> None:
    of_cases = vars(getattr(cases, family.__name__.rpartition(".")[2])).values()
    its = {case.op for value in of_cases if isinstance(value, tuple) for case in value if isinstance(case, Case)}
    assert {ops_by_kernel()[m.kernel] for m in family.MUTATIONS} <= its


def test_every_part_that_an_entry_uses_has_a_bug_or_a_reason() -> None:
    used = {part for kernel in ops_by_kernel() for part in SOURCE.library.written(kernel) if "!" not in part}
    broken = {m.part for m in MUTATIONS}
    assert used - broken - set(UNTESTED) == set()
    assert set(UNTESTED) <= used - broken


def ops_by_kernel() -> Mapping[str, str]:
    return {kernel_of(spec): spec.op for spec in ENTRIES}
