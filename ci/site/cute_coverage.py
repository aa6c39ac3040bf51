"""What there is of each operation of CuTe, as a table: a page of the reference (cute_reference.py).

It is made of the definitions, of what the passes and the executor say they take, and of the counts of NVIDIA's tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.rewriter import Rewriter

from ci.suites.operations import path_of
from toolchain.cute.dialect.algebra import AlgebraOp
from toolchain.cute.dialect.tensors import FieldsType
from toolchain.cute.dialect.values import CompareOp, GetScalarsOp, MakeOp, StaticOp
from toolchain.cute.executor.instructions.table import ROWS as EXECUTED
from toolchain.cute.nvgpu.descriptor_ops import InstructionDescriptorOp, SmemDescriptorOp
from toolchain.cute.parse import parse
from toolchain.cute.passes import PASSES
from toolchain.cute.passes.desugar import WRITERS
from toolchain.cute.passes.desugar.atoms import MADE
from toolchain.cute.passes.fold_static import FOLDED
from toolchain.cute.passes.lower import CUTE as LOWERED
from toolchain.cute.passes.nvgpu_to_nvvm import OURS as WRITTEN
from toolchain.errors import SourceError

TO_BASE = ("cute-fold-static", "cute-expand-ops", "cute-to-base")
INFERRED = (AlgebraOp, CompareOp)  # the others' text says the type of their result
VALUES = (AlgebraOp, CompareOp, GetScalarsOp, MakeOp, StaticOp)
COMPUTED = (SmemDescriptorOp, InstructionDescriptorOp)  # words that the executor makes without a row of its own
NO = "–"

PAGE = """\
{made}

# What there is of each operation

{counts}

- *inferred*: the type of the result follows from the operands.
- *verified*: its definition refuses wrong operands, results and numbers.
- *folded*: by `cute-fold-static`, where the result is known.
- *lowered*: the passes by which it goes; `cute-to-base` stands for `cute-expand-ops` with it. Both columns are of what
  the example takes: `cute.slice` of a layout is folded, and of a tensor not.
- *run*: on the CPU executor: as an instruction of it, or as the arithmetic, loads and instructions that it becomes.
- *compared*: chunks of [NVIDIA's tests](../suites.md#cute-irs-own-tests) with it that pass, those that fail, and how
  many of the first are programs whose values are compared. Operations without chunks are ours alone: NVIDIA's open CuTe
  IR has none of that name, or no test with it.

Every operation is parsed, printed and read again: its example in this reference.

{rows}
"""


def coverage(made: str, kinds: Mapping[str, tuple[type[Operation], str]]) -> str:
    """The page. `made`: its first line; `kinds`: the operations and the text of their examples, by name."""
    compared: dict[str, dict[str, int]] = json.loads(path_of("cute").read_text())
    rows = [row(kind, example, compared.get(kind.name, {})) for kind, example in kinds.values()]
    head = ["operation", "inferred", "verified", "folded", "lowered", "run", "compared"]
    with_chunks = sum(row[-1] != NO for row in rows)
    failed = [row[0] for row in rows if "failed" in row[-1]]
    counts = (
        f"There are {len(rows)} operations. NVIDIA's tests have {with_chunks} of them; all chunks of these pass, "
        f"except some of {' and '.join(failed)}. "
        f"Not run on the executor: {', '.join(row[0] for row in rows if row[-2] == NO)}."
    )
    table = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return PAGE.format(made=made, counts=counts, rows="\n".join(table))


def row(kind: type[Operation], example: str, compared: Mapping[str, int]) -> list[str]:
    """The cells of an operation."""
    passes = list(lowered_by(kind, example))
    return [
        f"`{kind.name}`", _said(issubclass(kind, INFERRED)), _said(verifies(kind)), _said(folds(kind, example)),
        ", ".join(f"`{name}`" for name in passes) or NO, _said(runs(kind)), _chunks(compared),
    ]  # fmt: skip


def _said(there: bool) -> str:
    return "yes" if there else NO


def _chunks(compared: Mapping[str, int]) -> str:
    words = [f"{compared[key]} {key}" for key in ("passed", "failed", "programs") if key in compared]
    return ", ".join(words) or NO


def verifies(kind: type[Operation]) -> bool:
    """True if the definition has a verifier beyond its operands' types."""
    return getattr(kind, "verify_", None) is not IRDLOperation.verify_


def folds(kind: type[Operation], example: str) -> bool:
    """True if `cute-fold-static` folds it where its result is known. A place in memory never is."""
    made = next(op for op in parse(example).walk() if isinstance(op, kind))
    return issubclass(kind, FOLDED) and not any(isinstance(result.type, FieldsType) for result in made.results)


def lowered_by(kind: type[Operation], example: str) -> Iterator[str]:
    """The passes by which it goes."""
    if kind in WRITERS or issubclass(kind, MADE):
        yield "cute-desugar"
    if issubclass(kind, LOWERED):
        yield "cute-lower"
    if kind.name.startswith("cute.") and (issubclass(kind, VALUES) or kind in WRITERS) and _to_base(kind, example):
        yield "cute-to-base"
    if issubclass(kind, WRITTEN):
        yield "cute-nvgpu-to-nvvm"


def _to_base(kind: type[Operation], example: str) -> bool:
    """True if it goes in a function that gives its results back."""
    module = parse(example)
    made = next(op for op in module.walk() if isinstance(op, kind))
    around = made.parent_op()
    assert isinstance(around, func.FuncOp) and around.body.block.last_op is not None
    Rewriter.replace_op(around.body.block.last_op, func.ReturnOp(*made.results))
    around.properties["function_type"] = FunctionType.from_lists(
        list(around.function_type.inputs), [result.type for result in made.results]
    )
    try:
        for name in TO_BASE:
            PASSES[name](module)
    except SourceError:  # it is left: cute-lower takes tensors
        return False
    return not any(isinstance(op, kind) for op in module.walk())


def runs(kind: type[Operation]) -> bool:
    """True if the executor has it, or what it becomes."""
    return kind.name in EXECUTED or issubclass(kind, (*LOWERED, *COMPUTED, *MADE)) or kind in WRITERS
