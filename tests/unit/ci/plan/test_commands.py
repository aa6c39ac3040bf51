"""Each job's own command, against what a change of the modules that it imports is said to reach."""

from __future__ import annotations

import ast
import runpy
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import grimp
import pytest

from ci.matrix import Matrix
from ci.plan.graph import Graph
from ci.plan.jobs import Job, plan
from toolchain.knobs import ROOT

# The stages that start a job of each kind: jobs.py. Compiling starts all, and what runs on a GPU is compiled before.
STARTS = {
    "compile": {"compile", "conformance", "model", "gate"},
    "interpret": {"compile", "interpret", "conformance", "model"},
    "check": {"compile", "conformance", "model"},
    "gate": {"compile", "gate"},
}


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    nox: Any = ModuleType("nox")
    nox.session, nox.options = _session, SimpleNamespace()
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return runpy.run_path(str(ROOT / "noxfile.py"))


def _session(function: Any = None, **_: Any) -> Any:
    return function or _session


def commands(job: Job, sessions: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """The command lines `python -m ...` of a job, without `python -m`."""
    for line in job.local.split(" && "):
        words = shlex.split(line)
        ran: list[Sequence[str]] = [words]
        if words[:2] == ["nox", "-s"]:
            ran = []
            run = partial(_note, ran)
            sessions[words[2]](SimpleNamespace(posargs=words[4:], run=run, bin=".venv/bin", env={}))
        for command in ran:
            found = list(map(str, command))
            yield found[found.index("-m") + 1 :]


def _note(ran: list[Sequence[str]], *command: object, **_: object) -> None:
    ran.append([*map(str, command)])


class Imports:
    """What commands import."""

    def __init__(self, graph: grimp.ImportGraph) -> None:
        self._graph = graph

    def of(self, *commands: Sequence[str]) -> set[str]:
        """The modules that `python -m` with these words may import, and those of the commands that it starts. The
        command line of tilestack imports all its commands as it starts, but what a command imports when it runs only
        of the one that is given."""
        found: set[str] = set()
        left, known = [*map(tuple, commands)], set[tuple[str, ...]]()
        while left:
            command = left.pop()
            if command in known:
                continue
            known.add(command)
            main = f"{command[0]}.__main__" if f"{command[0]}.__main__" in self._graph.modules else command[0]
            runs = f"tilestack.cli.{command[1]}" if command[0] == "tilestack" else main
            found |= {runs, *self._at_start(main), *self._graph.find_upstream_modules(runs)}
            left += [(each[0], *each[1:2]) for each in _starts(main)]
        return found

    def _at_start(self, module: str) -> set[str]:
        """The modules that are imported as soon as one is: by statements that stand in no function."""
        found: set[str] = set()
        left = [module]
        while left:
            one = left.pop()
            if one in found:
                continue
            found.add(one)
            lines = _at_margin(one)
            left += [one.rpartition(".")[0]] * ("." in one)
            left += [
                other for other in self._graph.find_modules_directly_imported_by(one)
                if any(each["line_number"] in lines
                       for each in self._graph.get_import_details(importer=one, imported=other))
            ]  # fmt: skip
        return found


def _starts(module: str) -> Iterator[list[str]]:
    """The command lines `[python, "-m", ...]` in a module's text."""
    for node in ast.walk(ast.parse(path_of(module).read_text())):
        if isinstance(node, ast.List):
            words = [each.value if isinstance(each, ast.Constant) else None for each in node.elts]
            if "-m" in words:
                yield [word for word in words[words.index("-m") + 1 :] if isinstance(word, str)]


def path_of(module: str) -> Path:
    file = ROOT / f"{module.replace('.', '/')}.py"
    return file if file.is_file() else ROOT / module.replace(".", "/") / "__init__.py"


@cache
def _at_margin(module: str) -> set[int]:
    """The lines of a module that run as it is imported, without those for type checkers."""
    found: set[int] = set()
    for node in ast.parse(path_of(module).read_text()).body:
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not typing and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            found |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return found


@pytest.fixture(scope="module")
def imports(graph: Graph) -> Imports:
    return Imports(graph._imports)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("kind", STARTS)
def test_whatever_a_jobs_command_imports_starts_that_job(
    kind: str, matrix: Matrix, graph: Graph, imports: Imports, sessions: Mapping[str, Any]
) -> None:
    made = plan(matrix, matrix.events["pull_request"], None)
    job = {"compile": made.compile, "interpret": made.interpret, "check": made.gpu, "gate": made.gpu}[kind][0]
    ran = list(commands(job, sessions))
    if kind in ("check", "gate"):
        ran = [each for each in ran if (each[0] == "ci.gate") == (kind == "gate")]
    assert ran
    modules = imports.of(*ran)
    assert len(modules) > 50
    unreached = {
        path: sorted(reach)
        for module in sorted(modules)
        if not (reach := graph.reach(path := str(path_of(module).relative_to(ROOT))).stages) & STARTS[kind]
    }
    assert not unreached


def test_the_modules_of_the_matrix_command_are_among_them(
    matrix: Matrix, imports: Imports, sessions: Mapping[str, Any]
) -> None:
    """The test above finds what it is to find: the command's own module, what it imports late, and the compile."""
    (job,) = plan(matrix, matrix.events["pull_request"], None).interpret[:1]
    modules = imports.of(*commands(job, sessions))
    assert {"tilestack.cli.matrix", "ci.report.write", "conformance.native", "tilestack.cli.compile"} <= modules
    assert "tilestack.cli.draw_layout" in modules and "ci.gate.verdict" not in modules
