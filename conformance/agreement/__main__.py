"""`python -m conformance.agreement compile [--target sm_90]`, then, on a GPU, `… run --output FILE`.

`compile` puts the cubins into the compile cache, and says which cases tileiras refuses; it needs no GPU. `run` takes
them from there: a GPU machine needs the cache's folder and xdsl, but no compiler. `page` makes docs/agreement.md of the
files in conformance/agreement/measured/, where the files of runs belong. `again` is for a change of the interpreter:
its results that now have the bits recorded of a GPU become equal in these files; no GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from toolchain import command, knobs
from toolchain.caching.cache import Cache
from toolchain.setup.uv import LINE

from .cases import candidates, cases
from .run import again, compile_cases, dump, run_all


def main() -> int:
    """Returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.agreement", description=__doc__)
    parser.add_argument("what", choices=["compile", "run", "again", "page"])
    parser.add_argument("--target", default="sm_90", metavar="SM", help="with compile (default sm_90)")
    parser.add_argument("--refused", type=Path, default=Path("build/agreement-refused.json"), metavar="FILE")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the GPU's results that differ, as .npy")
    parser.add_argument("--output", type=Path, default=Path("build/agreement.json"), metavar="FILE")
    asked = parser.parse_args()
    work = {"compile": _compile, "run": _run, "again": _again, "page": _page}[asked.what]
    return command.run(lambda: work(asked), set_up=LINE)


def _compile(asked: argparse.Namespace) -> None:
    refused = compile_cases(cases(), asked.target, Cache(knobs.cache_dir()), knobs.jobs())
    asked.refused.parent.mkdir(parents=True, exist_ok=True)
    asked.refused.write_text(json.dumps(refused, indent=1) + "\n")
    print(f"{len(cases())} cases for {asked.target}; tileiras refuses {len(refused)}: {asked.refused}")


def _run(asked: argparse.Namespace) -> None:
    from toolchain.runtime.cuda import CudaExecutor
    from toolchain.runtime.driver import load, offered

    refused = json.loads(asked.refused.read_text())
    with CudaExecutor() as gpu:
        wanted = [case for case in cases() if case.name not in refused]
        rows = run_all(wanted, gpu, Cache(knobs.cache_dir()), lambda line: print(line, flush=True), asked.keep)
        cuda = ".".join(map(str, offered(load())))
        dump(asked.output, gpu.gpu.name, f"CUDA {cuda}", refused, rows)
    equal = sum(not row.unequal for row in rows)
    print(f"{equal} of {len(rows)} cases are equal in every bit: {asked.output}")


def _again(_: argparse.Namespace) -> None:
    from .page import MEASURED, Measured

    for path in sorted(MEASURED.glob("*.json")):
        found = Measured.load(path)
        rows = again(list(found.rows.values()), candidates())
        changed = [row.name for row in rows if row != found.rows[row.name]]
        print(f"{path}: {len(changed)} more are equal in every bit: {', '.join(changed)}")
        dump(path, found.gpu, found.driver, found.refused, rows)


def _page(_: argparse.Namespace) -> None:
    from .page import PAGE, measured, page

    PAGE.write_text(page(measured()))


if __name__ == "__main__":
    sys.exit(main())
