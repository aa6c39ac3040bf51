"""Finds what made the difference between a kernel's two builds: its code, the bytecode version, or a tool.

Every mixture of what differs is compiled, some from the first build, the rest from the second, and compared with the
first. The smallest mixtures that show the difference are the answer, since two changes may only act together.
"""

from __future__ import annotations

import itertools
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolchain.bundles.bundle import Bundle, BundleEntry, Compiled, write
from toolchain.caching.cache import Cache
from toolchain.compiling.cubin import Usage, inspect_all
from toolchain.compiling.stages import cubin_key, stages
from toolchain.contract.artifact import Artifact, tile_ir
from toolchain.errors import BytecodeError, TilestackError, ToolchainError, ToolFailed, UsageError
from toolchain.pinned.toolkits import PARTS, Toolkit, mixed, toolkit
from toolchain.tileir.bytecode import read
from toolchain.tileir.bytecode import write as write_bytecode

from .compare import cells, entry_usage
from .score import gain, reasons, total

Factor = Literal["kernel", "bytecode", "tileiras", "ptxas", "libnvvm"]
FACTORS: tuple[Factor, ...] = ("kernel", "bytecode", *PARTS)
SKIP = 125  # the exit code of a check that cannot tell, as in `git bisect run`


@dataclass(frozen=True)
class Build:
    """One of the two builds of a kernel: its entry, code and cubin, and the version and sha256 of each tool."""

    entry: BundleEntry
    artifact: Artifact
    cubin: bytes
    tools: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, bundle: Bundle, cell: str) -> Build:
        """Of `source/symbol target`. Raises BundleError, and UsageError if the bundle does not have it."""
        found = cells(bundle)
        if cell not in found:
            raise UsageError(f"{bundle.root} has no cubin of {cell}", hint="tilestack diff lists those in both bundles")
        entry, target = found[cell]
        if not entry.interpretable:
            raise UsageError(f"{cell} is {entry.form.kind}: only Tile IR bytecode is bisected")
        artifact = Artifact(bundle.read(entry.code), entry.form)
        return cls(entry, artifact, bundle.read(entry.cubins[target]), bundle.tools)

    def toolkit(self) -> Toolkit:
        """The tools that compiled it. Raises UsageError or ToolchainError if they are not here."""
        parts = toolkit(self.tools["tileiras"]["version"])
        for name in PARTS:
            if (used := self.tools[name])["sha256"] != parts.tool(name).sha256:
                raise ToolchainError(
                    f"the bundle was compiled by {name} {used['version']} (sha256 {used['sha256'][:16]}…), which is "
                    f"not the {name} of toolkit {parts.name} here",
                    hint="a mixture is taken apart only if each of its tools is of a toolkit: compile with --toolkit",
                )
        return parts


@dataclass(frozen=True)
class Mixture:
    """`second`: the factors that are taken from the second build. `shows`: whether it has the difference; None if that
    cannot be said, and `said` has the reason."""

    second: frozenset[Factor]
    shows: bool | None
    said: str

    def to_json(self) -> dict[str, Any]:
        return {
            "from_second": [name for name in FACTORS if name in self.second],
            "shows": self.shows,
            "said": self.said,
        }


@dataclass(frozen=True)
class Answer:
    """`differ`: the factors that differ at all; `together`: those that could not be separated; `causes`: the smallest
    mixtures that show the difference."""

    cell: str
    differ: tuple[Factor, ...]
    together: str
    mixtures: tuple[Mixture, ...]

    @property
    def causes(self) -> list[Mixture]:
        shown = [each for each in self.mixtures if each.shows]
        return [each for each in shown if not any(other.second < each.second for other in shown)]

    def to_json(self) -> dict[str, Any]:
        return {
            "cell": self.cell, "differ": list(self.differ), "note": self.together,
            "causes": [each.to_json()["from_second"] for each in self.causes],
            "mixtures": [each.to_json() for each in self.mixtures],
        }  # fmt: skip

    def lines(self) -> list[str]:
        """For a terminal."""
        lines = [
            f"{self.cell} differs in: {', '.join(self.differ)}",
            *([f"  {self.together}"] if self.together else []),
        ]
        for each in self.mixtures:
            names = " + ".join(name for name in FACTORS if name in each.second)
            mark = {True: "shows it", False: "does not", None: "unknown"}[each.shows]
            lines.append(f"  second's {names:38} {mark:9} {each.said}")
        causes = [" together with ".join(n for n in FACTORS if n in each.second) for each in self.causes]
        return [*lines, f"made by: {', or by '.join(causes) if causes else 'nothing that was tried'}"]


def bisect(bundles: tuple[Bundle, Bundle], cell: str, cache: Cache, check: str | None = None) -> Answer:
    """Takes the difference of one cell apart. `check`: a command that says whether a mixture shows it, by exit code, as
    `git bisect run` has it; `{base}` and `{bundle}` stand for bundles. Without it, resources decide.

    Raises UsageError if the two builds do not differ, ToolchainError if a build cannot be repeated byte for byte.
    """
    one, two = (Build.of(bundle, cell) for bundle in bundles)
    target = cell.rpartition(" ")[2]
    differ, together = _differ(one, two)
    if not differ or one.cubin == two.cubin:
        raise UsageError(f"{cell} is the same in both bundles", hint="tilestack diff lists what differs")
    kits = (one.toolkit(), two.toolkit())

    def make(second: frozenset[Factor]) -> tuple[Artifact, bytes, Toolkit]:
        artifact = _code(one, two, second)
        kit = mixed({name: kits[name in second] for name in PARTS})
        stage = stages(kit.tool)["tile-ir"]
        name = cubin_key("tile-ir", artifact.payload, stage.fingerprint, target)
        return artifact, cache.get_or_make(name, lambda: stage.run(artifact.payload, target)), kit

    for build, second in ((one, frozenset[Factor]()), (two, frozenset(differ))):
        if make(second)[1] != build.cubin:
            raise ToolchainError(
                f"{cell}: compiling the {'second' if second else 'first'} bundle's code again gives another cubin",
                hint="the bundle was compiled with other options: compile it again",
            )
    if check is None:
        by_usage = by_resources(one.cubin, two.cubin, one.entry.spec.symbol, cache)
        judge: Judge = lambda _, cubin, __: by_usage(cubin)  # noqa: E731
    else:
        judge = _by_command(check, one, target)
    mixtures: list[Mixture] = []
    for size in range(1, len(differ) + 1):
        for chosen in itertools.combinations(differ, size):
            second = frozenset(chosen)
            try:
                shows, said = judge(*make(second))
            except (ToolchainError, BytecodeError) as error:
                why = error.why if isinstance(error, ToolFailed) and error.why else str(error.args[0])
                shows, said = None, f"does not compile: {why.splitlines()[0][:200]}"
            mixtures.append(Mixture(second, shows, said))
    return Answer(cell, differ, together, tuple(mixtures))


Judge = Callable[[Artifact, bytes, Toolkit], tuple[bool | None, str]]


def _differ(one: Build, two: Build) -> tuple[tuple[Factor, ...], str]:
    """The factors in which two builds differ, and a note if kernel and bytecode version cannot be separated."""
    found: list[Factor] = [name for name in PARTS if one.tools.get(name) != two.tools.get(name)]
    versions = [build.artifact.form.version for build in (one, two)]
    if one.artifact.payload == two.artifact.payload:
        return tuple(found), ""
    if versions[0] == versions[1]:
        return ("kernel", *found), ""
    try:
        same = _rewritten(one.artifact, versions[1]).payload == two.artifact.payload
        _rewritten(two.artifact, versions[0])
    except TilestackError as error:
        why = str(error.args[0]).splitlines()[0]
        return ("kernel", *found), f"kernel means its bytecode version too, as one has what the other lacks: {why}"
    return (("bytecode", *found) if same else ("kernel", "bytecode", *found)), ""


def _rewritten(artifact: Artifact, version: str) -> Artifact:
    return tile_ir(write_bytecode(read(artifact.payload), version), version)


def _code(one: Build, two: Build, second: frozenset[Factor]) -> Artifact:
    """The kernel of one build in the bytecode version of one."""
    versions = [build.artifact.form.version for build in (one, two)]
    if _differ(one, two)[1]:  # not separable
        return (two if "kernel" in second else one).artifact
    kernel = "kernel" in second
    if "kernel" not in _differ(one, two)[0]:  # the same kernel: the version alone decides
        return (two if "bytecode" in second else one).artifact
    version = versions["bytecode" in second]
    made = (two if kernel else one).artifact
    return made if made.form.version == version else _rewritten(made, version)


def by_resources(first: bytes, second: bytes, symbol: str, cache: Cache) -> Callable[[bytes], tuple[bool, str]]:
    """Judges a cubin of a kernel that was built twice. It shows the difference if it has at least half of the points
    that the second build has over the first, or, where the rules give none, if it has the second build's resources and
    instructions."""

    def usage(cubin: bytes) -> Usage:
        return entry_usage(next(iter(inspect_all([cubin], cache, 1))), symbol)

    before, after = usage(first), usage(second)
    changed = reasons(before, after)
    points = total if total(changed) >= gain(changed) else gain
    whole = points(changed)
    if before == after:
        raise UsageError(
            "the two builds use the same resources and instructions, in another order or with other operands",
            hint="a difference in time or error: --check COMMAND, on a GPU",
        )

    def judge(cubin: bytes) -> tuple[bool, str]:
        if not whole:
            same = usage(cubin) == after
            return same, f"{'the same' if same else 'not the'} resources and instructions as the second"
        found = reasons(before, usage(cubin))
        said = ", ".join(str(reason) for reason in found if points([reason])) or "no such change"
        return points(found) >= whole / 2, f"{points(found):.1f} of {whole:.1f} points: {said}"

    return judge


def _by_command(check: str, one: Build, target: str) -> Judge:
    """A mixture shows the difference if the command ends with another exit code than 0."""

    def stored(folder: Path, artifact: Artifact, cubin: bytes, tools: Mapping[str, Mapping[str, str]]) -> Path:
        row = Compiled(one.entry.spec, artifact, {target: cubin}, one.entry.fingerprint)
        write(folder, [row], {name: dict(row) for name, row in tools.items()})
        return folder

    def judge(artifact: Artifact, cubin: bytes, kit: Toolkit) -> tuple[bool | None, str]:
        tools = {name: {"version": part.version, "sha256": part.sha256} for name, part in kit.parts.items()}
        with tempfile.TemporaryDirectory(prefix="tilestack-") as temporary:
            base = stored(Path(temporary, "base"), one.artifact, one.cubin, one.tools)
            return run_check(check, base=base, bundle=stored(Path(temporary, "bundle"), artifact, cubin, tools))

    return judge


def run_check(check: str, **bundles: Path) -> tuple[bool | None, str]:
    """Whether a command says that a bundle shows the difference. Raises UsageError if it says nothing that
    `git bisect run` knows."""
    words = [word.format(**bundles) for word in shlex.split(check)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"--check: {words[0]} cannot be started: {error.strerror}") from error
    if done.returncode in (0, SKIP):
        return (None if done.returncode else False), f"the check ended with {done.returncode}"
    if done.returncode > SKIP or done.returncode < 0:
        raise UsageError(f"--check ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return True, f"the check ended with {done.returncode}"
