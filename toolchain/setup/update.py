"""Choose versions anew: write the three locks, toolchain/pinned/pins.toml and what is generated from it.

`python -m toolchain.setup.update [uv pip compile options]`. Without options versions stay unless pyproject.toml asks
for others; `--upgrade` takes the newest of all, `--upgrade-package NAME` of one. The native stacks and the workflows'
actions stay as they are: `python -m toolchain.setup.update stack NAME ...` moves a stack (see native.py), `... actions`
takes the newest actions (see actions.py).
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import command
from ..errors import ToolchainError
from ..files import write_whole
from ..knobs import ROOT, cache_dir
from ..native import recipes
from ..pinned.pins import PINS, file_sha256
from ..pinned.stacks import stacks
from . import actions, native
from .uv import LINE, uv

MACHINES = ("aarch64", "x86_64")

# What of the lock is the stack itself: what decides a cubin or runs it.
STACK = (
    "cuda-bindings",
    "cuda-tile",
    "llvmlite",
    "ml-dtypes",
    "numpy",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvcc",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-tileiras",
    "nvidia-nvvm",
    "xdsl",
)


@dataclass(frozen=True)
class ToolFile:
    """A file of a wheel that we run or that a tool loads, and the other such files that it runs or loads."""

    wheel: str
    path: str
    uses: tuple[str, ...] = ()


TOOLS: Mapping[str, ToolFile] = {
    "cuobjdump": ToolFile("nvidia-cuda-cuobjdump", "nvidia/cu13/bin/cuobjdump", ("nvdisasm",)),
    "libnvvm": ToolFile("nvidia-nvvm", "nvidia/cu13/lib/libnvvm.so.4"),
    "nvdisasm": ToolFile("nvidia-cuda-nvdisasm", "nvidia/cu13/bin/nvdisasm"),
    "ptxas": ToolFile("nvidia-cuda-nvcc", "nvidia/cu13/bin/ptxas"),
    "tileiras": ToolFile("nvidia-cuda-tileiras", "nvidia/cu13/bin/tileiras", ("ptxas", "libnvvm")),
    "tileirdisasm": ToolFile("nvidia-cuda-tileiras", "nvidia/cu13/bin/tileirdisasm"),
}

HEADER = """\
# The stack's own versions and the files of it that we run. Written by `nox -s update_pins`, never by hand.
# Every wheel of the toolchain, with its hashes, stands in requirements.lock; the versions here are those.
"""


@dataclass(frozen=True)
class Locked:
    """One package of a lock: `text` is its lines as they stand there."""

    version: str
    sha256: frozenset[str]
    text: str


def read_lock(text: str) -> dict[str, Locked]:
    """The packages of a lock that `uv pip compile --generate-hashes` wrote, by name."""
    found: dict[str, Locked] = {}
    for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        if match := re.match(r"(?P<name>[\w.-]+)==(?P<version>\S+)", block):
            hashes = frozenset(re.findall(r"--hash=sha256:(\w{64})", block))
            if match["name"] in found:
                raise ToolchainError(f"the lock has {match['name']} at two versions")
            found[match["name"]] = Locked(match["version"], hashes, block)
    return found


def lock(source: str, output: Path, options: Sequence[str]) -> None:
    """Resolve for every Python that we support, wheels only, one version of each. The lock names no package index."""
    fixed = "--universal --fork-strategy fewest --python-version 3.11 --only-binary :all: --generate-hashes --no-header"
    command = ["pip", "compile", "-q", *shlex.split(source), *shlex.split(fixed), *options]
    uv([*command, "-o", str(output.relative_to(ROOT))], cwd=ROOT, doing=f"locking {output.name}")


def tool_hashes(locked: Mapping[str, Locked], machine: str) -> dict[str, str]:
    """The sha256 of each tool's file in the locked wheels for `machine`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheels = sorted({tool.wheel for tool in TOOLS.values()})
        (folder / "tools.lock").write_text("".join(locked[wheel].text for wheel in wheels))
        fixed = f"-q --no-deps --require-hashes --only-binary :all: --python-platform {machine}-manylinux_2_28"
        place = ["--python", sys.executable, "--target", ".", "-r", "tools.lock"]
        uv(["pip", "install", *shlex.split(fixed), *place], cwd=folder, doing=f"getting the tools for {machine}")
        return {name: file_sha256(folder / tool.path) for name, tool in TOOLS.items()}


def render_pins(versions: Mapping[str, str], hashes: Mapping[str, Mapping[str, str]]) -> str:
    """pins.toml for package versions and, by machine, tool hashes."""
    lines = [HEADER]
    for name, version in versions.items():
        lines.append(f'[wheels.{name}]\nversion = "{version}"\n')
    for name, tool in TOOLS.items():
        uses = ", ".join(f'"{other}"' for other in tool.uses)
        lines.append(f'[tools.{name}]\nwheel = "{tool.wheel}"\npath = "{tool.path}"\nuses = [{uses}]')
        lines.append(f"[tools.{name}.sha256]")
        lines.extend(f'{machine} = "{by_name[name]}"' for machine, by_name in hashes.items())
        lines.append("")
    return "\n".join(lines)


def update(options: Sequence[str]) -> None:
    requirements = ROOT / "requirements.lock"
    lock("pyproject.toml --all-extras --group dev", requirements, options)
    lock("--group bootstrap", ROOT / "bootstrap.lock", options)
    runtime = ["-c", requirements.name, *options]
    lock("pyproject.toml --extra report --group container", ROOT / "containers/runtime.lock", runtime)
    lock("--group s3", ROOT / "tests/compile/toolchain/s3.lock", options)
    lock("--group conan", native.RECIPES / "requirements.lock", options)
    locked = read_lock(requirements.read_text())
    hashes = {machine: tool_hashes(locked, machine) for machine in MACHINES}
    wheels = render_pins({name: locked[name].version for name in STACK}, hashes)
    write_whole(PINS, wheels + "\n" + native.render(stacks()))
    native.write_conandata(stacks())
    recipes.lock(cache_dir() / "native/lock")


def main() -> int:
    return command.run(_main, set_up=LINE)


def _main() -> None:
    if sys.argv[1:2] == ["stack"]:
        native.move_stack(sys.argv[2:])
        recipes.lock(cache_dir() / "native/lock")
        print(f"wrote {PINS} and the recipes' conandata.yml; next: nox -s build_toolchain -- --native")
        return
    if sys.argv[1:2] == ["actions"]:
        print(*actions.update(sys.argv[2:]), sep="\n")
        print(f"wrote {actions.TABLE} and the workflows; next: nox -s lint, nox -s workflows")
        return
    update(sys.argv[1:])
    print("wrote the locks, toolchain/pinned/pins.toml and the recipes' conandata.yml; next: nox -s tests")


if __name__ == "__main__":
    sys.exit(main())
