"""The hash of machine code beside nvdisasm's text, on kernels that the toolchain compiled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolchain.compiling.machine_code import machine_code
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


def compiled(folder: Path, symbol: str, divisor: int) -> bytes:
    """A kernel with a division, which is a function of its own, and a branch."""
    (folder / "k.ptx").write_text(f""".version 8.5\n.target sm_90\n.address_size 64
        .visible .entry {symbol}(.param .u64 p) {{
        .reg .f32 %x<3>; .reg .u64 %a; .reg .pred %p;
        ld.param.u64 %a, [p];
        ld.global.f32 %x0, [%a];
        setp.gt.f32 %p, %x0, 0f00000000;
        @%p bra done;
        div.rn.f32 %x1, %x0, {divisor}.0;
        st.global.f32 [%a], %x1;
        done: ret; }}\n""")
    tool("ptxas").run(["-arch=sm_90", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")])
    return (folder / "k.cubin").read_bytes()


def disassembled(folder: Path, cubin: bytes) -> list[str]:
    """The instructions without their addresses and the kernel's name."""
    (folder / "k.cubin").write_bytes(cubin)
    text = tool("nvdisasm").run(["--print-code", str(folder / "k.cubin")]).stdout
    lines = [line for line in text.splitlines() if re.match(r"\s+/\*[0-9a-f]{4,}\*/", line)]
    return [re.sub(r"`\(scale\w*\)", "", line.split("*/", 1)[1]).strip() for line in lines]


def test_kernels_of_the_same_instructions_have_the_same_hash_and_no_others(tmp_path: Path) -> None:
    made = {
        "plain": compiled(tmp_path, "scale", 3),
        "renamed": compiled(tmp_path, "scale_by_some_number", 3),
        "other": compiled(tmp_path, "scale", 5),
    }
    assert len(set(made.values())) == 3
    hashes = {name: machine_code(cubin) for name, cubin in made.items()}
    texts = {name: disassembled(tmp_path, cubin) for name, cubin in made.items()}
    assert len(texts["plain"]) > 10
    for name in made:
        assert (hashes[name] == hashes["plain"]) == (texts[name] == texts["plain"]) == (name != "other"), name


def test_how_long_an_instruction_waits_counts_though_no_disassembly_shows_it(tmp_path: Path) -> None:
    cubin = compiled(tmp_path, "scale", 3)
    first = tool("nvdisasm").run(["--print-code", "--print-instruction-encoding", str(tmp_path / "k.cubin")]).stdout
    low, high = re.findall(r"/\* 0x([0-9a-f]{16}) \*/", first)[:2]
    code = bytes.fromhex(low)[::-1] + bytes.fromhex(high)[::-1]
    assert cubin.count(code) == 1
    waits = bytearray(cubin)
    waits[cubin.index(code) + 13] ^= 0x02  # a bit of the number of cycles
    assert disassembled(tmp_path, bytes(waits)) == disassembled(tmp_path, cubin)
    assert machine_code(bytes(waits)) != machine_code(cubin)
