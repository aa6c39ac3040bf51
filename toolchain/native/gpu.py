"""Run the conformance matrix of a bundle in the runtime container, which has Python and no compiler.

`nox -s gpu_tests -- --container`. The container sees the checkout, the bundle and all GPUs; its packages are those of
containers/runtime.lock, installed once into a folder of the cache.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import command
from ..errors import UsageError
from ..files import only_one
from ..knobs import IMAGE, ROOT, cache_dir
from ..pinned.manifest import REPAIR
from .build import CHECKOUT, WORK, container
from .conan import WHEELS
from .engine import Container, Engine
from .images import image
from .make_images import ensure

BUNDLE, REPORT = "/bundle", "/report"
CDI_SETUP = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml (of the package nvidia-container-toolkit)"


@dataclass(frozen=True)
class Runtime:
    """A container that can run a bundle: the engine, how a command runs there without network and with the GPUs, and
    the Python that has the packages. `report`: writable, at /report."""

    engine: Engine
    container: Container
    python: str

    def run(self, words: Sequence[str], on_line: Callable[[str], None]) -> str:
        """What the Python says for these words. Raises ToolFailed."""
        return self.engine.run(self.container, [self.python, *words], on_line=on_line)

    def matrix(self, options: Sequence[str], on_line: Callable[[str], None]) -> None:
        """`tilestack matrix run` of the bundle. Raises ToolFailed if it does not end well."""
        self.run(["-u", "-m", "tilestack", "matrix", "run", "--bundle", BUNDLE, "--report", REPORT, *options], on_line)


def prepare(
    engine: Engine, bundle: Path, report: Path, *, checkout: Path = ROOT, exact: Sequence[str] = ()
) -> Runtime:  # fmt: skip
    """The runtime container with a bundle and a checkout, whose containers/runtime.lock says which packages it has.
    `exact`: other versions than that has, as NAME==VERSION, of which no hash is known. Raises UsageError for a bundle
    that is not there."""
    if not (bundle / "manifest.json").is_file():
        raise UsageError(f"no bundle in {bundle}", hint="tilestack compile --output DIR makes one")
    runtime, lock = ensure(engine, image("runtime")), "containers/runtime.lock"
    work = cache_dir() / "runtime"
    for folder in (work, report):
        folder.mkdir(parents=True, exist_ok=True)
    mounts = {
        checkout.absolute(): (CHECKOUT, "ro"),
        bundle.absolute(): (BUNDLE, "ro"),
        report.absolute(): (REPORT, "rw"),
        work: (WORK, "rw"),
    }
    environment = {
        "PYTHONPATH": CHECKOUT, "PYTHONDONTWRITEBYTECODE": "1", "TILESTACK_TOOLCHAIN": "/nowhere", IMAGE.name: runtime,
    }  # fmt: skip
    with_network = container(runtime, mounts, environment)
    decides = (checkout / lock).read_bytes() + " ".join(exact).encode()
    python = f"{WORK}/{hashlib.sha256(decides).hexdigest()[:8]}"
    more = f" && {python}/bin/pip install -q --no-deps --only-binary :all: {shlex.join(exact)}" if exact else ""
    install = (
        f"test -e {python}/whole || {{ rm -rf {python} && python3 -m venv {python} && {python}/bin/pip install -q "
        f"{' '.join(WHEELS)} -r {CHECKOUT}/{lock}{more} && touch {python}/whole; }}"
    )
    with only_one(work, "the runtime container's packages"):
        engine.run(with_network, ["sh", "-c", install], on_line=_show)
    # What is tested reaches nothing outside.
    return Runtime(engine, replace(with_network, network=False, gpus=engine.gpus()), f"{python}/bin/python")


def run(engine: Engine, bundle: Path, report: Path, options: Sequence[str]) -> None:
    """Run the matrix, its output on ours. Raises UsageError for a bundle that is not there, ToolFailed if the run does
    not end well."""
    made = prepare(engine, bundle, report)
    if made.container.gpus == "none":
        print(f"{engine.version} gives containers no GPU, so the CPU interpreter runs; next: {CDI_SETUP}", flush=True)
    made.matrix(options, _show)


def _show(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s gpu_tests -- --container")
    parser.add_argument("--bundle", type=Path, default=Path("build/bundle"), metavar="DIR")
    parser.add_argument("--report", type=Path, default=Path("build/report"), metavar="DIR")
    args, options = parser.parse_known_args(arguments)
    return command.run(lambda: run(Engine.find(), args.bundle, args.report, options), set_up=REPAIR)


if __name__ == "__main__":
    sys.exit(main())
