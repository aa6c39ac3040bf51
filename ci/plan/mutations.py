"""`python -m ci.plan.mutations`: is a wrong line caught by what a pull request with it runs?

Source lines are drawn, each is changed in a copy of the checkout and planned as a pull request. Of what would run, the
cheapest form runs here: the tests of the mirrored path, which every pull request runs, and the interpreter on some of
the ops that the plan chose. A command has a limit of CPU time, so that a busy machine changes no verdict. Where the
plan has no bundle, and the tests find nothing, the interpreter runs nevertheless: what it then finds the plan missed.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from toolchain import command
from toolchain.errors import UsageError
from toolchain.files import write_whole
from toolchain.knobs import ROOT, importing_from
from toolchain.pinned.manifest import REPAIR

from ..matrix import Matrix
from .graph import Graph, Reach, git
from .jobs import plan
from .mutate import Mutation, chosen

OUTPUT = Path("build/mutations.json")
FOLDERS = (
    "toolchain", "kernels_mlir", "kernels_py", "kernels_cute", "entries", "conformance", "gpt", "tune", "ci",
    "benchmarks", "tilestack", "cute_runtime",
)  # fmt: skip
SAMPLE = ("gelu", "layernorm")  # of the ops of a plan that has more: both sources of Tile IR, a GEMM-free second or two
WIDE = 8  # test files beside the mirrored ones
CPU_SECONDS = 20  # of a command
NO_TESTS = 5  # pytest's exit code where every test was left out
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
WALL = 8  # times as many by the clock: for what waits, and uses no CPU


@dataclass
class Row:
    """One mutation. `planned`: the stages, the ops by source. `verdict`: `caught`, by what `by` says; `missed` by the
    plan, though the interpreter finds it; `survived`. `ran`: the commands, with their seconds."""

    mutation: Mutation
    stages: Sequence[str]
    why: str
    ops: Sequence[str]
    verdict: str = "survived"
    by: str = ""
    ran: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])


@contextmanager
def copy(root: Path = ROOT) -> Generator[Path]:
    """The last commit in a folder of its own, with the toolchain."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as above:
        folder = Path(above) / "checkout"
        git(root, "worktree", "add", "--detach", str(folder), "HEAD")
        try:
            (folder / ".toolchain").symlink_to((root / ".toolchain").resolve())
            yield folder
        finally:
            git(root, "worktree", "remove", "--force", str(folder))


def mirrored(path: str, root: Path) -> list[str]:
    """The test files of the mirrored path; if none is named as the module, all of its folder."""
    folder, name = Path(path).parent, Path(path).stem
    kinds = [root / kind / folder for kind in ("tests/unit", "tests/compile")]
    named = [file for kind in kinds for file in kind.glob(f"test_{name}.py")]
    found = named or [file for kind in kinds for file in sorted(kind.glob("test_*.py"))]
    return [str(file.relative_to(root)) for file in found]


def wider(path: str, used_by: Sequence[str], root: Path) -> list[str]:
    """Test files that run where the mirrored ones find nothing, of all that `nox -s tests` runs: those that import the
    module, then those of the modules that do (`used_by`), the nearest by their paths first."""
    folder, name = str(Path(path).parent).replace("/", "."), Path(path).stem
    named = re.compile(rf"\b{re.escape(folder)}(\.{name}\b| import [^\n]*\b{name}\b| import \([^)]*\b{name}\b)")
    files = [file for kind in ("unit", "compile") for file in sorted((root / "tests" / kind).rglob("test_*.py"))]
    found = [str(file.relative_to(root)) for file in files if named.search(file.read_text())]
    near = Path(path).parts
    found.sort(key=lambda file: -sum(part in near for part in Path(file).parts))
    theirs = [file for user in used_by for file in mirrored(user, root) if Path(file).stem == f"test_{Path(user).stem}"]
    return [file for file in dict.fromkeys([*found, *theirs]) if file not in mirrored(path, root)][:WIDE]


def judge(
    mutation: Mutation, reach: Reach, stages: Sequence[str], ops: Sequence[str], used_by: Sequence[str], folder: Path
) -> Row:
    """Change the line in the copy, run what the plan chose, and change it back. A command that fails is run again on
    the line as it was: what fails there too has caught nothing."""
    row = Row(mutation, stages, reach.why, ops)
    file = folder / mutation.path
    kept = file.read_text()
    for by, words in _commands(row, used_by, folder):
        file.write_text(mutation.apply(kept))
        try:
            again = _fails(row, folder, words)
        finally:
            file.write_text(kept)
        if again and not _fails(row, folder, again):
            row.by, row.verdict = by, "caught" if by == "tests" or stages else "missed"
            break
    return row


def _commands(row: Row, used_by: Sequence[str], folder: Path) -> Iterator[tuple[str, Sequence[str]]]:
    python = str(folder / ".toolchain/venv/bin/python")
    pytest = [python, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    if tests := mirrored(row.mutation.path, folder):
        yield "tests", [*pytest, *tests]
    if wide := wider(row.mutation.path, used_by, folder):
        yield "tests", [*pytest, *wide]
    ops = [f"--op={op}" for op in row.ops] or [*(f"--op={op}" for op in SAMPLE), "--dtype=f32"]
    bundle, report = str(folder / "build/bundle"), str(folder / "build/report")
    compiles = [python, "-m", "tilestack", "compile", "--no-targets", "--force", *ops, "--output", bundle]
    runs = [python, "-m", "tilestack", "matrix", "run", "--bundle", bundle, "--report", report, "--executor=cpu", "-x"]
    # As one: run again on the line as it was, it makes the bundle again too.
    yield "interpreter", ["sh", "-c", f"{shlex.join(compiles)} && {shlex.join([*runs, *ops])}"]


def _fails(row: Row, folder: Path, words: Sequence[str]) -> Sequence[str]:
    """Nothing if a command ends well, else the command that shows it again: of tests the one that failed."""
    began = time.monotonic()
    code, said = 0, ""  # where the machine is too busy to say: not caught
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            words, cwd=folder, env=importing_from(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=WALL * CPU_SECONDS, check=False, preexec_fn=_limit,
        )  # fmt: skip
        code, said = done.returncode, done.stdout
    row.ran.append(("interpreter" if words[0] == "sh" else "tests", round(time.monotonic() - began, 1)))
    if code == 0 or (code == NO_TESTS and "pytest" in words):
        return []
    failed = FAILED.findall(said) if "pytest" in words else []
    return [*(word for word in words if not word.startswith("tests/")), failed[0]] if failed else words


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 2))


def left(path: Path) -> list[Mutation]:
    """Those of an output that were not caught. Raises UsageError for another file."""
    try:
        rows = json.loads(path.read_text())
        return [Mutation(**row["mutation"]) for row in rows if row["verdict"] != "caught"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no output of ci.plan.mutations: {error!r}") from error


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: verdicts by what the plan chose, then what was not caught."""
    kinds = ["tests alone", "some ops", "some stages, every op", "everything"]
    verdicts = ["caught by tests", "caught by interpreter", "missed", "survived"]
    counts = Counter((_kind(row), f"{row.verdict}{f' by {row.by}' * (row.verdict == 'caught')}") for row in rows)
    yield f"| the plan has | mutants | {' | '.join(verdicts)} |\n|---|---|---|---|---|---|"
    for kind in kinds:
        numbers = [counts[kind, verdict] for verdict in verdicts]
        yield f"| {kind} | {sum(numbers)} | {' | '.join(map(str, numbers))} |"
    yield "\n| not caught | verdict | the plan has |\n|---|---|---|"
    for row in rows:
        if row.verdict != "caught":
            yield f"| {row.mutation} | {row.verdict} | {_kind(row)}: {row.why} |"


def _kind(row: Row) -> str:
    if not row.stages:
        return "tests alone"
    if row.ops:
        return "some ops"
    return "everything" if "compile" in row.stages else "some stages, every op"


def main(argv: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(
        prog="python -m ci.plan.mutations", description="Mutate lines; see whether CI sees it."
    )
    top.add_argument("--count", type=int, default=200, help="how many lines, default 200")
    top.add_argument("--seed", type=int, default=1, help="of the draw, default 1")
    top.add_argument("--first", type=int, default=0, help="begin with this one of them, default 0")
    top.add_argument("--file", action="append", default=[], help="draw from these alone; may be repeated")
    top.add_argument("--minutes", type=float, default=60, help="begin no further one after so long, default 60")
    top.add_argument("--again", type=Path, metavar="FILE", help="those that an earlier output says were not caught")
    top.add_argument("--output", type=Path, default=OUTPUT, help=f"default {OUTPUT}")
    args = top.parse_args(argv)
    return command.run(lambda: _main(args), set_up=REPAIR)


def _main(args: argparse.Namespace) -> None:
    ends = time.monotonic() + 60 * args.minutes
    matrix = Matrix.load()
    graph, event = Graph(matrix), matrix.events["pull_request"]
    rows: list[Row] = []
    with copy() as folder:
        listed = args.file or git(folder, "ls-files", *FOLDERS).split()
        paths = [path for path in listed if path.endswith((".py", ".mlir"))]
        drawn = left(args.again) if args.again else chosen(folder, paths, args.count, args.seed)
        for number, mutation in enumerate(drawn[args.first :], args.first):
            if time.monotonic() > ends:
                break
            reach = graph.reach(mutation.path)
            made = plan(matrix, event, [reach])
            stages = sorted(reach.stages) if any(made.kinds.values()) else []
            ops = sorted({op for names in reach.ops.values() for op in names}) if reach.narrow else []
            rows.append(judge(mutation, reach, stages, ops[:2], graph.importers(mutation.path), folder))
            print(f"{number}: {mutation}: {rows[-1].verdict} {rows[-1].by}", file=sys.stderr, flush=True)
            write_whole(args.output, json.dumps([asdict(row) for row in rows], indent=1), parents=True)
        shutil.rmtree(folder / "build", ignore_errors=True)
    print(*table(rows), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
