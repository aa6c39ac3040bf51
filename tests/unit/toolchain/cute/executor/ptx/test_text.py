"""PTX text as instructions: labels, scopes, operands, and what is said of what is no PTX here."""

from __future__ import annotations

import pytest

from toolchain.cute.executor.ptx.text import Operand, Parameter, Variable, is_ptx, parse
from toolchain.errors import SourceError

TEXT = """\
// a comment; with a {
.version 8.5
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 16 .b32 fixed[8];
/* over
   lines */
.visible .entry k(
  .param .u64 .ptr .global .align 4 k_0,
  .param .f32 k_1,
  .param .align 64 .b8 k_2[128]
) .reqntid 64, 2
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>, %x;
  mov.b32 %r1, 0f3F800000; mov.b32 %r2, -0x10;
$L1: again:
  @!%p1 bra $L1;
  {
    .reg .b32 %x;
    st.shared.v2.b32 [%r1+-4], {%x, %r3};
  }
  cp.x [%r1], [%r2, {%r3, 0}], %p0|%p1, _, %tid.x, dynamic;
  ret;
}
"""


def reg(name: str) -> Operand:
    return Operand("register", name)


def test_a_kernel_is_read() -> None:
    module = parse(TEXT, "k.ptx")
    assert module.variables == [Variable("shared", "dynamic", 1024, 0), Variable("shared", "fixed", 16, 32)]
    entry = module.entries["k"]
    assert (entry.dims, entry.cluster) == ((64, 2, 1), None)
    assert entry.parameters == [
        Parameter("k_0", "u64", True),
        Parameter("k_1", "f32"),
        Parameter("k_2", "b8", size=128),
    ]
    labels = [each.label for each in entry.body if each.label]
    mov, wide, branch, store, copy, leave = [each for each in entry.body if not each.label]
    assert labels == ["$L1", "again"]
    assert (mov.line, mov.operands) == (17, (reg("%r1"), Operand("number", value=0x3F800000, is_float=True)))
    assert wide.operands[1] == Operand("number", value=-16)
    assert (branch.opcode, branch.guard, branch.negated) == ("bra", reg("%p1"), True)
    address, vector = store.operands
    assert (address.kind, address.parts, address.offset) == ("memory", (reg("%r1"),), -4)
    own = vector.parts[0].name
    assert own != "%x" and entry.registers[own] == "b32" and vector.parts[1] == reg("%r3")  # a scope's own register
    kinds = [operand.kind for operand in copy.operands]
    assert kinds == ["memory", "memory", "pair", "_", "special", "symbol"]
    assert copy.operands[1].parts == (reg("%r2"), Operand("vector", parts=(reg("%r3"), Operand("number", value=0))))
    assert (leave.opcode, leave.line) == ("ret", 25)


def test_ptx_is_told_from_other_text() -> None:
    assert is_ptx(TEXT)
    assert not is_ptx("module { // .version 8.5\n}")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ret;", ".branchtargets a;", "k.ptx:25: the executor does not know the directive .branchtargets"),
        (".visible .entry k(", ".func f(", "k.ptx:9: the executor does not know '.func f'"),
        ("%r1, 0f3F800000", "%r1, %r2 + 1", r"k.ptx:17: no operand: '%r2 \+ 1'"),
        (".reg .b32 %r<4>", ".reg .b128 %r<4>", "k.ptx:16: the executor has no registers of type .b128"),
        ("ret;\n}", "ret;", "k.ptx:26: the text ends within braces"),
        ("[%r1], [%r2", "[], [%r2", r"k.ptx:24: no address: \[\]"),
    ],
)
def test_what_it_does_not_know_is_named_with_its_line(old: str, new: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        parse(TEXT.replace(old, new, 1), "k.ptx")
