"""`python -m benchmarks.cute.kernels FOLDER`: a bundle of the entries in sm_90.toml, on any machine.

`python -m benchmarks.cute.gemm FOLDER` and `python -m benchmarks.cute.attention FOLDER` time them on a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from toolchain import command, knobs
from toolchain.bundles import bundle
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.compiling.progress import progress_bar
from toolchain.contract.entries import load_table
from toolchain.contract.sources import packages
from toolchain.contract.targets import targets
from toolchain.errors import UsageError
from toolchain.setup.uv import LINE

from . import TARGET

SOURCE = "cute"
TABLE = Path(__file__).with_name(f"{TARGET}.toml")


def main() -> int:
    """Writes the bundle; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.kernels", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--op", action="append", default=[], help="only entries of this op; repeat")
    asked = parser.parse_args()
    return command.run(lambda: _compile(asked.folder, asked.op), set_up=LINE)


def _compile(folder: Path, ops: Collection[str]) -> None:
    specs = [spec for spec in load_table(TABLE).entries(SOURCE) if not ops or spec.op in ops]
    if not specs:
        raise UsageError(f"{TABLE.name} has no entry of {', '.join(ops)}")
    entries = [(packages()[SOURCE], spec) for spec in specs]
    to = [targets()[TARGET]]
    with progress_bar() as progress:
        made = pipeline.compile_entries(entries, to, Cache(knobs.cache_dir()), jobs=knobs.jobs(), progress=progress)
    for failure in made.failures:
        raise failure.error
    tools = pipeline.tools_used(to, {each.artifact.form.kind for each in made.compiled})
    bundle.write(folder, made.compiled, tools)
    print(f"{folder}: {len(made.compiled)} entries for {TARGET}")


if __name__ == "__main__":
    sys.exit(main())
