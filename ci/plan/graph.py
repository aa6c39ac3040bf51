"""What a changed file reaches: stages of CI, and of the compile stage which ops of which sources, for which targets."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import grimp

from toolchain.contract.entries import PORTABLE, entries_of
from toolchain.contract.sources import packages
from toolchain.contract.targets import targets
from toolchain.errors import SourceError, UsageError
from toolchain.knobs import ROOT
from toolchain.tileir.compose import Library

from ..matrix import STAGES, Matrix

EVERY = "*"  # all ops, all targets
MLIR, PY = "mlir", "py"  # sources whose files say which kernels they are of; of another one a file is of every kernel


@dataclass(frozen=True)
class Reach:
    """What one path reaches. `ops`: by source, or EVERY of all sources. `target`: EVERY, or the only one."""

    path: str
    why: str
    stages: frozenset[str]
    ops: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    target: str = EVERY

    @property
    def narrow(self) -> bool:
        """Whether it reaches some ops alone."""
        return bool(self.ops)


class Graph:
    """The import graph and the kernels of a checkout. Raises UsageError if the matrix names a module that it lacks."""

    def __init__(self, matrix: Matrix, root: Path = ROOT) -> None:
        self._matrix, self._root = matrix, root
        if missing := [m for modules in matrix.modules.values() for m in modules if m not in self._imports.modules]:
            raise UsageError(f"ci/matrix.toml: stage: no module {', '.join(missing)}", hint="name modules of this tree")

    @cached_property
    def _imports(self) -> grimp.ImportGraph:
        names = tomllib.loads((self._root / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
        if gone := [name for name in names if not (self._root / name).is_dir()]:  # else an installed one is taken
            raise UsageError(
                f"pyproject.toml: importlinter names {', '.join(gone)}, and {self._root} has no such folder",
                hint="a folder that was renamed: give it its new name there and in sources.toml",
            )
        sys.path.insert(0, str(self._root))  # another package's wheel has a folder `benchmarks` too
        try:
            return grimp.build_graph(*names, cache_dir=None)
        finally:
            sys.path.remove(str(self._root))

    @cached_property
    def _needed(self) -> Mapping[str, Collection[str]]:
        """The modules that each stage depends on."""
        found: dict[str, set[str]] = {}
        for stage, modules in self._matrix.modules.items():
            found[stage] = set(modules)
            for module in modules:
                found[stage] |= self._imports.find_descendants(module)
                for each in (module, *self._imports.find_descendants(module)):
                    found[stage] |= self._imports.find_upstream_modules(each)
        return found

    def importers(self, path: str) -> list[str]:
        """The files of the modules that import a Python file directly, in their order."""
        module = self._module(path)
        if module not in self._imports.modules:
            return []
        found = sorted(self._imports.find_modules_that_directly_import(module))
        return [file for each in found if (self._root / (file := f"{each.replace('.', '/')}.py")).is_file()]

    def reach(self, path: str, renamed_to: str = "") -> Reach:
        """What a path, relative to the checkout, reaches. What nothing is known of reaches everything. `renamed_to`:
        the name that a path which is gone has now. A module that was renamed reaches what it reaches under its new
        name, for whatever imported it before and does not now was changed too."""
        if renamed_to:
            old, new = self._module(path), self._module(renamed_to)
            if path.endswith(".py") and old not in self._imports.modules and new in self._imports.modules:
                return replace(self.reach(renamed_to), path=path, why=f"it is {renamed_to} now")
            found = self.reach(path)
            return replace(found, why=f"it is {renamed_to} now, and by its old name: {found.why}")
        first, _, rest = path.partition("/")
        if first in self._sources and rest:
            return self._kernels(path, self._sources[first], rest)
        if first == "entries" and rest.endswith(".toml"):
            return self._entries(path, rest.removesuffix(".toml"))
        for row in self._matrix.files:
            if any(fnmatch.fnmatch(path, pattern) for pattern in row.patterns):
                return Reach(path, "a file that ci/matrix.toml lists", frozenset(row.stages))
        module = self._module(path)
        if not path.endswith(".py") or module not in self._imports.modules:
            gone = "" if (self._root / path).exists() else ", which is not here any more"
            return _everything(path, f"nothing is known of this file{gone}")
        stages = frozenset(stage for stage, needed in self._needed.items() if module in needed)
        if not stages:  # a command line, say, that runs a stage: what no stage is known to need may be needed by all
            return _everything(path, "no stage is known to import it")
        return Reach(path, "imported by what these stages run", stages)

    @staticmethod
    def _module(path: str) -> str:
        return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def _sources(self) -> Mapping[str, str]:
        """The kernel sources by their folders."""
        return {package: name for name, package in packages().items()}

    def _entries(self, path: str, name: str) -> Reach:
        if name == PORTABLE:
            return _everything(path, "every target's entries")
        if name not in targets():
            return _everything(path, f"no target is called {name}")
        return Reach(path, f"the entries of {name}", frozenset(STAGES), target=name)

    def _kernels(self, path: str, source: str, file: str) -> Reach:
        if file == "__init__.py" or source not in (MLIR, PY):  # the kernels in CuTe share their parts
            ops = {op for ops in self._ops(source).values() for op in ops}
            return Reach(path, f"it makes every entry of {source}", frozenset(STAGES), {source: frozenset(ops)})
        try:
            kernels = self._mlir_kernels(file) if source == MLIR else self._py_kernels(file)
        except SourceError as error:
            return _everything(path, f"the kernels cannot be read: {error.args[0]}")
        ops = frozenset(op for kernel, ops in self._ops(source).items() if kernel in kernels for op in ops)
        if not ops:
            return _everything(path, "no entry is known to come from this file")
        return Reach(path, f"compiled into {len(ops)} ops of {source}", frozenset(STAGES), {source: ops})

    def _ops(self, source: str) -> Mapping[str, set[str]]:
        """The ops of each kernel."""
        found: dict[str, set[str]] = {}
        for spec in entries_of(source):
            found.setdefault(spec.kernel or spec.op, set()).add(spec.op)
        return found

    @cached_property
    def _library(self) -> Library:
        return Library.load(self._root / packages()[MLIR])

    def _mlir_kernels(self, file: str) -> set[str]:
        """The kernels that use a part or an alias of a file."""
        name = f"{packages()[MLIR]}/{file}"
        here = {f"{item.kind} @{item.name}" for item in self._library.items.values() if item.file.name == name}
        found: set[str] = set()
        for kind, kernel in self._library.items:
            if kind == "kernel":
                used = self._library.written(kernel)
                if any(part in here or part.startswith(f"{name} !") for part in used):
                    found.add(kernel)
        return found

    def _py_kernels(self, file: str) -> set[str]:
        """The names of all functions in the modules that import a file, and in itself: kernels are among them."""
        module = self._module(f"{packages()[PY]}/{file}")
        if module not in self._imports.modules:
            return set()
        users = {module, *self._imports.find_downstream_modules(module)}
        found: set[str] = set()
        for user in users:
            if user.startswith(f"{packages()[PY]}."):
                found |= _functions((self._root / f"{user.replace('.', '/')}.py").read_text())
        return found


def _functions(text: str) -> set[str]:
    """The functions at the left margin of a Python file, found without parsing: a broken file is planned too."""
    return {line[4:].partition("(")[0] for line in text.splitlines() if line.startswith("def ")}


def _everything(path: str, why: str) -> Reach:
    return Reach(path, why, frozenset(STAGES))


def git(root: Path, *words: str, answers: Sequence[int] = (0,)) -> str:
    """What a git command writes. Raises UsageError for another exit code than one of `answers`."""
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed", hint="name the changed files with --changed") from error
    if done.returncode not in answers:
        raise UsageError(
            f"{' '.join(command)}: {done.stderr.strip() or f'exit code {done.returncode}'}",
            hint="--base takes a commit of this repository; a shallow clone may lack it: git fetch --unshallow",
        )
    return done.stdout


def union(reaches: Iterable[Reach]) -> frozenset[str]:
    """All stages that are reached. Compiling reaches the stages behind it."""
    stages = frozenset(stage for reach in reaches for stage in reach.stages)
    return frozenset(STAGES) if "compile" in stages else stages
