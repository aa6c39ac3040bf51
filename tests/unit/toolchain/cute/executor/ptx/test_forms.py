"""Instructions of PTX as operations of the executor: the text of each operation is known by its own name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from ci.site.cute_reference import FOLDER
from toolchain.cute.executor.instructions.table import ROWS as EXECUTED
from toolchain.cute.executor.ptx.forms import ROWS, Unknown, form_of
from toolchain.cute.executor.ptx.text import Instruction, Operand, parse
from toolchain.cute.nvgpu import ARCH, ArchOp
from toolchain.cute.parse import parse as parse_mlir

# Written with more than one instruction, of which the last, or none, is that of another row.
SEVERAL = {
    "wgmma.after", "cluster.rank", "cluster.size", "registers", "clock", "prefetch", "unpack.pair", "convert.quad",
    "unpack.quad", "permute", "copy.load_once",
}  # fmt: skip
WORDS = {
    name for name in ARCH if name.startswith(("word.", "flag."))
}  # a GPU's loops and additions, which only the IR names
# The same text as another operation's, or as one of nvvm.
ALIASES = {
    "cluster.arrive": "nvvm.cluster.arrive",
    "cluster.wait": "nvvm.cluster.wait",
    "mbarrier.wait": "mbarrier.try_wait",
}


class Slots:
    """Registers by number, as they are asked for."""

    def __init__(self) -> None:
        self.given: list[Operand] = []

    def slot(self, operand: Operand) -> int:
        self.given.append(operand)
        return len(self.given) - 1

    def address(self, operand: Operand) -> int:
        return self.slot(operand)

    def fresh(self) -> int:
        return self.slot(Operand("_"))


def operations() -> dict[str, ArchOp]:
    """An operation of each kind for sm_80 and sm_90a, from the reference's examples."""
    found: dict[str, ArchOp] = {}
    for name in ("sm80", "sm90"):
        for op in parse_mlir((FOLDER / f"{name}.mlir").read_text()).walk():
            if isinstance(op, ArchOp):
                found.setdefault(op.name.removeprefix("cute_nvgpu.arch."), op)
    return found


OPERATIONS = operations()


def instructions(op: ArchOp) -> Sequence[Instruction]:
    text, _ = op.asm
    text = re.sub(r"\$\{:uid\}", "0", text)
    text = re.sub(r"\$(\d+)", r"%r\1", text)
    head = ".version 8.5\n.visible .entry k() { .reg .b32 %r<999>;\n"
    return [each for each in parse(head + text + "\n}").entries["k"].body if each.opcode]


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - SEVERAL - WORDS))
def test_the_text_of_an_operation_is_that_operation(name: str) -> None:
    op = OPERATIONS[name]
    found = [form for each in instructions(op) if (form := form_of(each.opcode, each.operands, Slots())) is not None]
    assert len(found) == 1
    form = found[0]
    assert form.name == ALIASES.get(name, name)
    wanted = 0 if name == "set_registers" or op.n is None else op.number
    assert (form.number if name != "set_registers" else 0) == wanted
    own = name not in ("convert.pair", "set_registers", "cluster.arrive")
    assert form.atom == (op.atom_name if own else form.atom)


def test_every_form_is_one_that_the_executor_has() -> None:
    names = {
        form.name
        for op in OPERATIONS.values()
        for each in instructions(op)
        if (form := form_of(each.opcode, each.operands, Slots())) is not None
    }
    assert len(names) > 45
    assert {name if name.startswith("nvvm.") else f"cute_nvgpu.arch.{name}" for name in names} <= set(EXECUTED)
    assert len({pattern for pattern, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 15, -1", "within a part of the warp"),
        ("shfl.sync.idx.b32 %r1, %r2, %r3, 31, 0xff", "not of the whole warp"),
        ("bar.sync 3", "another number than 0"),
        ("bar.sync 1, %r1", "a register where"),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, %r4, %r5, %r6, 1, -1, 0, 0",
            "sign is changed",
        ),
    ],
)
def test_a_form_that_it_does_not_have_is_said(text: str, said: str) -> None:
    each = parse(f".version 8.5\n.entry k() {{ .reg .b32 %r<9>;\n{text};\n}}").entries["k"].body[0]
    with pytest.raises(Unknown, match=said):
        form_of(each.opcode, each.operands, Slots())


def test_the_sides_of_a_product_are_its_flags() -> None:
    text = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, {}, %r5, %r6, 1, 1, {}"
    names: list[str] = []
    for a, flags in (("%r4", "0, 1"), ("%r4", "1, 0"), ("{%r7, %r8, %r9, %r10}", "1")):
        each = parse(
            f".version 8.5\n.entry k() {{ .reg .b32 %r<19>;\n{text.replace('{}', a, 1).replace('{}', flags)};\n}}"
        )
        body = each.entries["k"].body[0]
        form = form_of(body.opcode, body.operands, Slots())
        assert form is not None
        names.append(form.atom)
    tile = "m64n8k16.f32.bf16"
    assert names == [f"wgmma.{tile}.km", f"wgmma.{tile}.mk", f"wgmma_rs.{tile}.km"]
