"""Run the conformance matrix of a bundle in the runtime container, which has Python and no compiler.

`nox -s gpu_tests -- --container`. The container sees the checkout, the bundle and all GPUs; its packages are those of
containers/runtime.lock, installed once into a folder of the cache.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import command
from ..errors import UsageError
from ..files import only_one
from ..knobs import ROOT, cache_dir
from ..pinned.manifest import REPAIR
from .build import CHECKOUT, WORK, container
from .conan import WHEELS
from .engine import Engine
from .images import image
from .make_images import ensure

LOCK = ROOT / "containers/runtime.lock"
BUNDLE, REPORT = "/bundle", "/report"
CDI_SETUP = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml (of the package nvidia-container-toolkit)"


def run(engine: Engine, bundle: Path, report: Path, options: Sequence[str]) -> None:
    """Run the matrix, its output on ours. Raises UsageError for a bundle that is not there, ToolFailed if the run does
    not end well."""
    if not (bundle / "manifest.json").is_file():
        raise UsageError(f"no bundle in {bundle}", hint="tilestack compile --output DIR makes one")
    runtime = ensure(engine, image("runtime"))
    gpus = engine.gpus()
    if gpus == "none":
        print(f"{engine.version} gives containers no GPU, so the CPU interpreter runs; next: {CDI_SETUP}", flush=True)
    work = cache_dir() / "runtime"
    for folder in (work, report):
        folder.mkdir(parents=True, exist_ok=True)
    mounts = {
        ROOT: (CHECKOUT, "ro"),
        bundle.absolute(): (BUNDLE, "ro"),
        report.absolute(): (REPORT, "rw"),
        work: (WORK, "rw"),
    }
    environment = {"PYTHONPATH": CHECKOUT, "PYTHONDONTWRITEBYTECODE": "1", "TILESTACK_TOOLCHAIN": "/nowhere"}
    with_network = container(runtime, mounts, environment)
    python = f"{WORK}/{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:8]}"
    install = (
        f"test -e {python}/whole || {{ rm -rf {python} && python3 -m venv {python} && {python}/bin/pip install -q "
        f"{' '.join(WHEELS)} -r {CHECKOUT}/containers/runtime.lock && touch {python}/whole; }}"
    )
    with only_one(work, "the runtime container's packages"):
        engine.run(with_network, ["sh", "-c", install], on_line=_show)
    # What is tested reaches nothing outside.
    matrix = [f"{python}/bin/python", "-u", "-m", "tilestack", "matrix", "run", "--bundle", BUNDLE, "--report", REPORT]
    engine.run(replace(with_network, network=False, gpus=gpus), [*matrix, *options], on_line=_show)


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
