"""`python -m ci.cute_compare --cutlass DIR`: compares, and prints what was found. Exit code 1 if anything differs."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from toolchain import command

from .cases import groups
from .compare import Finding, compare
from .cpp import Compiler
from .verdict import DIFFERENT

CUDA = Path("/usr/local/cuda/include")
SET_UP = "g++, a checkout of CUTLASS and CUDA's headers: docs/cute.md"


def main() -> int:
    """Runs until there are enough cases."""
    parser = argparse.ArgumentParser(prog="python -m ci.cute_compare", description=__doc__)
    parser.add_argument("--cutlass", type=Path, required=True, metavar="DIR", help="a checkout of CUTLASS")
    parser.add_argument("--include", type=Path, action="append", metavar="DIR",
                        help=f"CUDA's headers and its cuda/std (default {CUDA} and its cccl); repeat")  # fmt: skip
    parser.add_argument("--cases", type=int, default=200_000, metavar="N", help="at least so many (default 200000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random layouts (default 0)")
    asked = parser.parse_args()
    includes = (asked.cutlass / "include", *(asked.include or (CUDA, CUDA / "cccl")))
    compiler, draw = Compiler(includes), random.Random(asked.seed)
    verdicts, kinds = Counter[tuple[str, str]](), Counter[str]()
    different: list[Finding] = []
    began = told = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for cases in groups(draw):
            for finding in compare(cases, compiler, Path(folder)):
                verdicts[finding.case.operation, finding.said] += 1
                kinds.update(finding.case.kinds or ["none of these"])
                if finding.said == DIFFERENT:
                    different.append(finding)
                    print(finding, flush=True)
            if (now := time.monotonic()) - told > 60:
                told = now
                print(f"{sum(verdicts.values())} cases, {now - began:.0f} s", file=sys.stderr, flush=True)
            if sum(verdicts.values()) >= asked.cases:
                break
    print(report(verdicts, kinds, time.monotonic() - began))
    return 1 if different else 0


def report(verdicts: Counter[tuple[str, str]], kinds: Counter[str], seconds: float) -> str:
    """A row for each operation, then the sums."""
    columns = sorted({said for _, said in verdicts})
    lines = [f"{'operation':32}" + "".join(f"{said:>20}" for said in columns)]
    for operation in sorted({operation for operation, _ in verdicts}):
        lines.append(f"{operation:32}" + "".join(f"{verdicts[operation, said]:20}" for said in columns))
    sums = {said: sum(count for (_, at), count in verdicts.items() if at == said) for said in columns}
    lines.append(f"{'all':32}" + "".join(f"{sums[said]:20}" for said in columns))
    lines.append("with " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    lines.append(f"{sum(sums.values())} cases in {seconds:.0f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(command.run(main, set_up=SET_UP))
