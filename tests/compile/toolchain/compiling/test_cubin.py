"""The counts of `inspect`, on kernels whose counts are known: PTX compiled by the toolchain's own ptxas."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.caching.cache import Cache
from toolchain.compiling import cubin
from toolchain.compiling.cubin import Usage, inspect, inspect_all, serialised
from toolchain.errors import ToolchainError
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


def assembled(tmp_path: Path, ptx: str, *options: str, target: str = "sm_90") -> list[Usage]:
    (tmp_path / "k.ptx").write_text(f".version 8.5\n.target {target}\n.address_size 64\n{ptx}")
    command = [f"-arch={target}", *options, str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
    tool("ptxas").run(command)
    return inspect((tmp_path / "k.cubin").read_bytes())


def live_values(symbol: str, count: int) -> str:
    """A kernel that needs `count` registers at once: it loads them all, then stores them all in reverse."""
    loads = "\n".join(f"ld.volatile.global.u32 %r{i}, [%a+{4 * i}];" for i in range(count))
    stores = "\n".join(f"st.volatile.global.u32 [%a+{4 * i}], %r{count - 1 - i};" for i in range(count))
    return f""".visible .entry {symbol}(.param .u64 p) {{
        .reg .u32 %r<{count}>; .reg .u64 %a;
        ld.param.u64 %a, [p];
        {loads}
        {stores}
        ret; }}\n"""


def test_registers_and_spills(tmp_path: Path) -> None:
    (free,) = assembled(tmp_path, live_values("k", 60))
    assert free.symbol == "k" and free.registers >= 60 and free.spills == 0
    (tight,) = assembled(tmp_path, live_values("k", 60), "-maxrregcount=32")
    assert tight.registers <= 32 and tight.spills >= 2 * (60 - 32) and tight.stack >= 4 * (60 - 32)
    assert tight.instructions > free.instructions


def test_every_entry_is_counted_by_itself(tmp_path: Path) -> None:
    rows = {row.symbol: row for row in assembled(tmp_path, live_values("few", 4) + live_values("many", 40))}
    assert set(rows) == {"few", "many"}
    assert rows["few"].registers < 40 <= rows["many"].registers
    assert rows["many"].instructions - rows["few"].instructions >= 2 * 36


def test_shared_memory(tmp_path: Path) -> None:
    ptx = """.visible .entry k(.param .u64 p) {
        .shared .align 4 .b8 room[4096]; .reg .u32 %r<2>; .reg .u64 %a;
        ld.param.u64 %a, [p];
        mov.u32 %r0, %tid.x; st.volatile.shared.u32 [room+4092], %r0;
        bar.sync 0;
        ld.volatile.shared.u32 %r1, [room]; st.global.u32 [%a], %r1; ret; }"""
    (row,) = assembled(tmp_path, ptx, target="sm_80")
    assert row.shared == 4096


def test_tensor_cores_and_predicated_instructions(tmp_path: Path) -> None:
    sums = "{%f0, %f1, %f2, %f3}"
    mma = f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {sums}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {sums};"
    ptx = f""".visible .entry k(.param .u64 p) {{
        .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .u64 %a; .reg .pred %p;
        ld.param.u64 %a, [p];
        {" ".join(f"ld.volatile.global.u32 %r{i}, [%a+{4 * i}];" for i in range(6))}
        {" ".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))}
        {mma} {mma} {mma}
        setp.ne.u32 %p, %r0, 7;
        @%p st.global.f32 [%a], %f0; st.global.f32 [%a+4], %f1;
        ret; }}"""
    (row,) = assembled(tmp_path, ptx, target="sm_80")
    assert row.tensor_core == {"HMMA": 3} and row.copy_engine == {}
    lines = tool("nvdisasm").run(["--print-code", str(tmp_path / "k.cubin")]).stdout.splitlines()
    assert any("@P" in line or "@!P" in line for line in lines)
    assert row.instructions == sum(line.lstrip().startswith("/*") and line.rstrip().endswith(";") for line in lines)


def test_the_copy_engine(tmp_path: Path) -> None:
    ptx = """.visible .entry k(.param .u64 p, .param .u64 q) {
        .shared .align 128 .b8 room[256]; .shared .align 8 .b64 barrier; .reg .u64 %a; .reg .u32 %r<2>;
        ld.param.u64 %a, [p]; mov.u32 %r0, room; mov.u32 %r1, barrier;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%a], 256, [%r1];
        cp.async.bulk.global.shared::cta.bulk_group [%a], [%r0], 256;
        ret; }"""
    (row,) = assembled(tmp_path, ptx)
    assert row.copy_engine == {"UBLKCP": 2} and row.tensor_core == {}


@pytest.mark.parametrize("data", [b"", b"no cubin at all", b"\x7fELF" + b"\x00" * 60])
def test_what_is_no_cubin(data: bytes) -> None:
    with pytest.raises(ToolchainError, match="cuobjdump"):
        inspect(data)


STEP = "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR24], R24 ;"
LAST = "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR24], R24, gsb0 ;"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ([LAST, "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"] * 4, 4),
        ([STEP, STEP, STEP, LAST, "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"], 0),
        ([LAST], 0),
        (["FFMA R0, R1, R2, R3 ;"] * 4, 0),
    ],
)
def test_products_that_wait_one_for_another(code: list[str], count: int) -> None:
    assert serialised("\n".join(code)) == count


def test_cubins_are_looked_at_once_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assembled(tmp_path, live_values("few", 4))
    few = (tmp_path / "k.cubin").read_bytes()
    assembled(tmp_path, live_values("many", 40))
    many = (tmp_path / "k.cubin").read_bytes()
    cache = Cache(tmp_path / "cache")
    wanted = [inspect(many), inspect(few), inspect(many)]
    assert list(inspect_all([many, few, many], cache, 2)) == wanted
    monkeypatch.setattr(cubin, "inspect", lambda _: pytest.fail("a cubin was disassembled again"))
    assert list(inspect_all([many, few, many], cache, 2)) == wanted
    monkeypatch.setattr(cubin, "pinned_fingerprint", lambda _: "another disassembler")
    with pytest.raises(pytest.fail.Exception):
        list(inspect_all([few], cache, 2))
    assert list(inspect_all([], cache, 2)) == []
