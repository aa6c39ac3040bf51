"""What a results.json says of its machine, built again here: `tilestack reproduce results.json --machine`.

The recorded commit is checked out, with the toolchain that it pins; its own code compiles the kernels and makes the
container image; the packages get the recorded versions. All of it is compared with the record. Then the matrix is run
in the container: on a machine without that GPU this ends at the launch.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.results import origin
from toolchain.bundles.bundle import MANIFEST, Bundle
from toolchain.errors import TilestackError, ToolchainError, ToolFailed, UsageError
from toolchain.knobs import ROOT
from toolchain.native.engine import Engine
from toolchain.native.gpu import Runtime, prepare

OUTPUT = Path("build/reproduce/machine")
PYTHON = ".toolchain/venv/bin/python"
PEERS = ("torch", "transformers", "triton", "cupy-cuda13x")  # what is compared with; no kernel of ours needs them
VERSIONS = """\
import json, platform, sys
from importlib import metadata
print(json.dumps({"python": platform.python_version(), **{name: metadata.version(name) for name in sys.argv[1:]}}))
"""


@dataclass(frozen=True)
class Record:
    """What results say of where they come from; empty is not recorded. `bundle`: the sha256 of its manifest. `image`:
    of the container. `device`: of the first GPU. `kernels`: the origin with those that ran."""

    path: Path
    commit: str
    changes: str
    bundle: str
    tools: Mapping[str, Mapping[str, str]]
    python: str
    packages: Mapping[str, str]
    image: str
    device: Mapping[str, Any]
    date: str
    ran: origin.Origin | None = None

    @classmethod
    def load(cls, path: Path) -> Record:
        """Reads a results file of the matrix or of the benchmarks. The benchmarks' first format lists no kernels.
        Raises UsageError for another file, and for one that does not say its commit."""
        try:
            table: Any = json.loads(path.read_text())
            old = table["format"] == 1
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}: not a results.json of ours ({type(error).__name__}: {error})") from error
        found = _first_format(path, table) if old else _with_origin(path)
        if not found.commit:
            raise UsageError(f"{path} does not say the commit of its bundle", hint="nobody can build it again")
        if found.changes:
            raise UsageError(
                f"{path}: its bundle was compiled from {found.commit[:12]} with uncommitted changes ({found.changes})",
                hint="nobody else has that tree",
            )
        return found

    @property
    def gpu(self) -> str:
        return str(self.device.get("gpu") or self.device.get("executor", "unknown"))

    def __str__(self) -> str:
        said = {"driver": self.device.get("driver"), "SM clock, MHz": self.device.get("clocks")}
        more = "".join(f", {name} {value}" for name, value in said.items() if value)
        return f"{self.path}: {self.gpu}{more}, {self.date}"


def _first_format(path: Path, table: Mapping[str, Any]) -> Record:
    seen = table.get("environment")
    if not isinstance(seen, dict) or "bundle" not in seen or "tools" not in seen:
        raise UsageError(f"{path} does not say where its results come from", hint="only what ran on a GPU can say it")
    device = {"gpu": seen["gpu"], "driver": seen["driver"], "target": seen["target"], "clocks": seen["sm_clock_mhz"]}
    return Record(
        path, seen["bundle_commit"], seen["bundle_changes"], seen["bundle"], seen["tools"], seen["python"],
        seen["packages"], "", device, seen["date"].partition(",")[0],
    )  # fmt: skip


def _with_origin(path: Path) -> Record:
    said = origin.read(path)
    first: Mapping[str, Any] = next(iter(said.devices), {})
    clocks = [each.get("sm_clock_mhz") for each in (first.get("before", {}), first.get("after", {})) if each]
    host, bundle = said.host, said.bundle
    return Record(
        path, bundle["commit"] or said.commit, bundle["changes"] or (said.changes if not bundle["commit"] else ""),
        bundle["sha256"], said.tools, host["python"], host["packages"], host.get("image", ""),
        {**first, "clocks": clocks}, said.date, said,
    )  # fmt: skip


@dataclass
class Rebuilding:
    """The steps, in order. `ops`: compile these alone, to save time. `differs`: what was found to be another one."""

    record: Record
    output: Path
    ops: Sequence[str]
    nox: str
    say: Callable[[str], object]
    differs: list[str] = field(default_factory=list[str])

    @property
    def tree(self) -> Path:
        return self.output / "checkout"

    @property
    def bundle(self) -> Path:
        return self.output / "bundle"

    def run(self, engine: Engine) -> None:
        """All steps. Raises what fails; a launch for want of the GPU does not, it is said."""
        self.say(f"record     {self.record}")
        self._check_out()
        self._compile()
        self._compare_bundle()
        runtime = self._container(engine)
        self._launch(runtime)

    def _compared(self, what: str, recorded: str, here: str) -> None:
        if not recorded:
            self.say(f"{what:10} {here}; not recorded")
        elif recorded == here:
            self.say(f"{what:10} {here}: as recorded")
        else:
            self.differs.append(what)
            self.say(f"{what:10} {here}: DIFFERS, {recorded} is recorded")

    def _check_out(self) -> None:
        commit = self.record.commit
        if not (self.tree / ".git").exists():
            self._ran(["git", "worktree", "add", "--quiet", "--detach", str(self.tree.absolute()), commit], ROOT)
        head = self._ran(["git", "rev-parse", "HEAD"], self.tree).strip()
        if head != commit:
            hint = f"git worktree remove --force {self.tree}"
            raise UsageError(f"{self.tree} is at {head[:12]}, not at {commit[:12]}", hint=hint)
        self.say(f"commit     {commit[:12]} in {self.tree}")
        self._ran([self.nox, "-s", "build_toolchain"], self.tree)

    def _compile(self) -> None:
        target = str(self.record.device.get("target") or "")
        which = ["--target", target] if target else ["--no-targets"]
        words = [word for op in self.ops for word in ("--op", op)]
        python = str((self.tree / PYTHON).absolute())
        command = [python, "-m", "tilestack", "compile", *which, *words, "--output"]
        shutil.rmtree(self.bundle, ignore_errors=True)  # rather than an option that an older commit may lack
        self._ran([*command, str(self.bundle.absolute())], self.tree)

    def _compare_bundle(self) -> None:
        manifest = (self.bundle / MANIFEST).read_bytes()
        made: Mapping[str, Mapping[str, str]] = json.loads(manifest).get("tools", {})
        for name, tool in self.record.tools.items():
            row = made.get(name, {})
            self._compared(name, f"{tool['version']} {tool['sha256'][:12]}", _short(row))
        if self.ops:
            self.say(f"bundle     {', '.join(self.ops)} alone: its manifest is not comparable")
        else:
            self._compared("bundle", self.record.bundle, hashlib.sha256(manifest).hexdigest())
        if self.record.ran is None:
            self.say("kernels    not recorded: results of the first format do not say which ran")
            return
        ran = self.record.ran
        bundle = Bundle.load(self.bundle)
        if self.ops:
            there = {(entry.spec.source, entry.spec.symbol) for entry in bundle.entries}
            ran = origin.only(ran, there)
        if wrong := origin.unlike(ran, bundle):
            self.differs.append("kernels")
            self.say("\n           ".join([f"kernels    {len(wrong)} of {len(ran.kernels)} DIFFER", *wrong[:5]]))
        else:
            self.say(f"kernels    {len(ran.kernels)} that ran: byte for byte")

    def _container(self, engine: Engine) -> Runtime:
        python = str((self.tree / PYTHON).absolute())
        digest = str(tomllib.loads((self.tree / "containers/images.toml").read_text())["images"]["runtime"]["digest"])
        self._ran([python, "-m", "toolchain.native.make_images", "runtime"], self.tree)
        if not engine.has(digest):
            raise ToolchainError(f"{engine.version} made another image than {digest}", hint=f"see {self.output}/log")
        self._compared("container", self.record.image, digest)
        wanted = {name: version for name, version in self.record.packages.items() if name not in PEERS}
        locked = (self.tree / "containers/runtime.lock").read_text()
        named = [f"{name}=={version}" for name, version in wanted.items()]
        exact = [each for each in named if not re.search(rf"^{re.escape(each)} ", locked, re.MULTILINE)]
        if exact:
            self.say(f"packages   {', '.join(exact)}: not those of the commit's lock, and without a recorded hash")
        runtime = prepare(engine, self.bundle, self.output / "report", checkout=self.tree, exact=exact)
        here: Mapping[str, str] = json.loads(runtime.run(["-c", VERSIONS, *wanted], lambda _: None))
        for name, version in {"python": self.record.python, **wanted}.items():
            self._compared(name, version, here[name])
        return runtime

    def _launch(self, runtime: Runtime) -> None:
        lines: list[str] = []
        options = ["--executor", "cuda", *(word for op in self.ops for word in ("--op", op))]
        try:
            runtime.matrix(options, lines.append)
        except ToolFailed:
            if runtime.container.gpus != "none":
                raise
            why = next((line for line in lines if line.startswith("error: ")), lines[-1] if lines else "no output")
            self.say(f"launch     not run, there is no {self.record.gpu}: {why}")
            return
        self.say(f"launch     {lines[-1]}")

    def _ran(self, words: Sequence[str], folder: Path) -> str:
        """The output of a command, which the log keeps. Raises ToolFailed."""
        self.output.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be started: {error.strerror}", hint="--nox PATH") from error
        with (self.output / "log").open("a") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        if done.returncode:
            raise ToolFailed(words, done.returncode, done.stderr or done.stdout, version=words[0])
        return done.stdout


def _short(tool: Mapping[str, str]) -> str:
    return f"{tool['version']} {tool['sha256'][:12]}" if tool else "none"


def rebuild(path: Path, output: Path, ops: Sequence[str], nox: str, say: Callable[[str], object]) -> list[str]:
    """Build what was measured again; what of it differs from the record. Raises UsageError for a file that does not
    say enough, ToolchainError where something cannot be built."""
    record = Record.load(path)
    try:
        made = Rebuilding(record, output, ops, nox, say)
        made.run(Engine.find())
    except TilestackError:
        say(f"not reproduced; {output}/log has what the commands said")
        raise
    return made.differs
