"""docs/agreement.md, from what the runs on GPUs have written to conformance/agreement/measured/."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.knobs import ROOT

from .cases import COUNT, Case, candidates
from .run import Agreement

MEASURED = Path(__file__).parent / "measured"
PAGE = ROOT / "docs/agreement.md"

HEAD = """\
# The interpreter and a GPU, operation by operation

Each element-wise operation, in every dtype and mode, ran on a GPU and on the interpreter: the same bytecode, {count}
elements each, among them edge values, all values of 16 bits and all pairs of 8. `python -m conformance.agreement` does
this. It made this page of what {gpus} gave.
A test holds the interpreter to cases that are equal in all bits.

- `=`: equal in every bit.
- `n ulp`: the results are at most so many representable numbers apart. The specification leaves the last bits of these
  functions open.
- `NaN`: both results are NaN where they differ, with other bits. A GPU makes one NaN in 32, 16 and 8 bits, and keeps
  bits of an operand in 64.
{differs}
{equal} of {total} cases are equal in every bit.

"""

NOTES = (
    "## Where the specification is silent",
    "",
    "The interpreter does what these GPUs do:",
    "",
    "- `divf` with `flush_to_zero`: a quotient that is subnormal before it is rounded becomes 0, also where a directed",
    "  mode would round it up to the smallest normal number.",
    "- `ftoi` of f8E4M3FN and f8E5M2 to i1: -0 gives 1. Of wider floats it gives 0.",
    "- A conversion to 8 bits saturates, also an infinity.",
    "",
    "Where the specification speaks, these GPUs do what it says. Of `divf` with `approx` it gives no bound for a",
    "divisor below 2^-126, and says that beyond 2^126 the quotient is 0, or NaN of an infinity: so does the",
    "interpreter.",
)


# Ready to be filed. Seen with tileiras 13.5.37 for sm_90 and sm_100, with bytecode 13.4 and 13.5.
REPORT = """\
## A report for upstream

What follows is ready to be filed where cuda-tile's defects are; nobody has filed it.

> **tileiras ends without a word for an ftof to bf16 that rounds up or down.** tileiras 13.5.37 (PyPI
> `nvidia-cuda-tileiras`), `--gpu-name=sm_90` and `sm_100`, bytecode 13.4 and 13.5. `tileirdisasm` takes the module.
> tileiras exits with 5, or is ended by an illegal instruction (SIGILL), and prints nothing. The same conversion
> compiles with `nearest_even` and with `zero`, and one to f16 with all four. Expected: a cubin, or an error that names
> the operation.
>
> ```mlir
> cuda_tile.module @m {
>   entry @k(%p: tile<ptr<f8E5M2>>, %q: tile<ptr<bf16>>) {
>     %a, %t0 = load_ptr_tko weak %p : tile<ptr<f8E5M2>> -> tile<f8E5M2>, token
>     %b = ftof %a rounding<negative_inf> : tile<f8E5M2> -> tile<bf16>
>     %t1 = store_ptr_tko weak %q, %b : tile<ptr<bf16>>, tile<bf16> -> token
>   }
> }
> ```"""


@dataclass(frozen=True)
class Measured:
    """What one GPU gave, by case."""

    gpu: str
    driver: str
    refused: Mapping[str, str]
    rows: Mapping[str, Agreement]

    @classmethod
    def load(cls, path: Path) -> Measured:
        table: dict[str, Any] = json.loads(path.read_text())
        rows = [Agreement(**row) for row in table["rows"]]
        return cls(table["gpu"], table["driver"], table["refused"], {row.name: row for row in rows})


def measured() -> list[Measured]:
    """All runs, by file name."""
    return [Measured.load(path) for path in sorted(MEASURED.glob("*.json"))]


def by_operation(runs: Sequence[Measured]) -> dict[str, tuple[int, int]]:
    """Of each operation how many cases are equal in every bit on all GPUs, and how many ran."""
    found: dict[str, tuple[int, int]] = {}
    for name, case in candidates().items():
        rows = [run.rows[name] for run in runs if name in run.rows]
        if rows:
            equal, ran = found.get(case.op, (0, 0))
            found[case.op] = equal + all(not row.unequal for row in rows), ran + 1
    return found


def page(runs: Sequence[Measured]) -> str:
    """The page. Where GPUs gave different results, a cell has the word of each."""
    known = [
        case for name, case in candidates().items() if any(name in run.rows or name in run.refused for run in runs)
    ]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for case in known:
        words = dict.fromkeys(_word(case, run) for run in runs)
        rows.setdefault((case.op, case.mode), {})[_types(case)] = " / ".join(words)
    equal = sum(word == "=" for cells in rows.values() for word in cells.values())
    any_differs = any(_word(case, run) == "differs" for case in known for run in runs)
    differs = "- `differs`: listed below the table.\n" if any_differs else ""
    gpus = " and ".join(f"an {run.gpu} ({run.driver})" for run in runs)
    head = HEAD.format(count=COUNT, gpus=gpus, equal=equal, total=len(known), differs=differs)
    lines = [head, "| operation | mode | |", "|---|---|---|"]
    for (op, mode), cells in rows.items():
        lines.append(f"| `{op}` | {mode.replace('<', '&lt;')} | {_grouped(cells)} |")
    differing = [(case, run.rows[case.name]) for case in known for run in runs[:1] if _word(case, run) == "differs"]
    if differing:
        lines += ["", "## What differs", "", "Bits of operands, the GPU's result, the interpreter's.", ""]
        lines += [f"- `{case.name}`: {' -> '.join(row.examples[0])}" for case, row in differing]
    lines += ["", *NOTES]
    refused = {name: why for run in runs for name, why in run.refused.items()}
    if refused:
        lines += ["", "## What tileiras refuses", "", "`verify` takes these, as the specification does.", ""]
        lines += [f"- `{name}`: {why}" for name, why in refused.items()]
        lines += ["", REPORT]
    return "\n".join(lines) + "\n"


def _word(case: Case, run: Measured) -> str:
    if case.name in run.refused:
        return "refused"
    row = run.rows.get(case.name)
    if row is None:
        return "not run"
    if not row.unequal:
        return "="
    if row.one_nan or (row.unequal > row.nans and not row.ulps):
        return "differs"
    return "NaN" if row.unequal == row.nans else f"{row.ulps} ulp"


def _types(case: Case) -> str:
    return "->".join(dict.fromkeys((*case.operands, case.result)))


def _grouped(cells: Mapping[str, str]) -> str:
    """Types with the same word together."""
    words: dict[str, list[str]] = {}
    for types, word in cells.items():
        words.setdefault(word, []).append(types)
    return "; ".join(f"{word}: {', '.join(types)}" for word, types in words.items())
