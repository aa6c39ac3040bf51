"""Descriptors as operations: their text, their words, and what is refused."""

from __future__ import annotations

import pytest

from toolchain.cute.compile import lower
from toolchain.cute.nvgpu.descriptor_ops import SmemDescriptorOp
from toolchain.cute.parse import parse
from toolchain.errors import SourceError

HEAD = "func.func @f(%p : !llvm.ptr<3>, %g : !llvm.ptr<1>) -> i64 {\n"
FIELDS = 'generation = "{}", leading = {} : i32, stride = {} : i32, swizzle = {} : i32'
INSTRUCTION = '%i = cute_nvgpu.instruction_descriptor {{atom = "{}", majors = "{}"}} : i32\n'


def text(
    generation: str = "sm_100", leading: int = 16, stride: int = 1024, swizzle: int = 128, pointer: str = "%p"
) -> str:
    fields = FIELDS.format(generation, leading, stride, swizzle)
    kind = "!llvm.ptr<3>" if pointer == "%p" else "!llvm.ptr<1>"
    return f"{HEAD}%d = cute_nvgpu.smem_descriptor({pointer}) {{{fields}}} : {kind} -> i64\nfunc.return %d : i64\n}}"


def test_it_is_printed_as_it_is_read() -> None:
    module = parse(text())
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("generation", "swizzle", "word"),
    [("sm_90", 128, 1 << 62), ("sm_90", 32, 3 << 62), ("sm_100", 128, 1 << 46 | 2 << 61), ("sm_100", 0, 1 << 46)],
)
def test_the_fields_count_16_bytes(generation: str, swizzle: int, word: int) -> None:
    (op,) = [op for op in parse(text(generation, 32, 1024, swizzle)).walk() if isinstance(op, SmemDescriptorOp)]
    assert op.fields == word | 64 << 32 | 2 << 16


def test_the_base_level_has_the_words() -> None:
    made = str(
        lower(text().replace("func.return", INSTRUCTION.format("tcgen05.m64n8k16.f32.f16", "kk") + "func.return"))
    )
    assert f"arith.constant {1 << 4 | 1 << 17 | 4 << 24} : i32" in made
    assert f"arith.constant {1 << 46 | 2 << 61 | 64 << 32 | 1 << 16} : i64" in made
    assert "cute_nvgpu" not in made


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (text(generation="sm_80"), "generation is one of sm_90, sm_100"),
        (text(swizzle=16), "swizzle is 0, 32, 64 or 128"),
        (text(stride=1000), "stride is a multiple of 16 bytes"),
        (text(pointer="%g"), "in shared memory"),
        (
            text().replace("func.return", INSTRUCTION.format("tcgen05.m64n9k16.f32.f16", "kk") + "func.return"),
            "no N of 9",
        ),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(wrong: str, said: str) -> None:
    with pytest.raises(SourceError, match=rf"^k\.mlir:\d+:1: cute_nvgpu\..*{said}"):
        parse(wrong, "k.mlir")
