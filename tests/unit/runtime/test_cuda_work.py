from __future__ import annotations

import struct

from toolchain.entry import ops
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.cuda_work import pack


def test_parameters_are_packed_in_abi_order(cpu: CpuExecutor) -> None:
    x = cpu.empty((5, 60), "f32").slice(1, 0, 48)
    arrays = [x, cpu.empty((48,), "f32"), cpu.empty((48,), "f32"), cpu.empty((5, 48), "f32")]
    head, content, offsets = pack(ops()["layernorm"].params, arrays)
    memory = bytearray(content)
    head.pack_into(memory, 0, *[a.pointer for a in arrays], 1e-5)
    kinds = "Qiiii" + "Qii" + "Qii" + "Qiiii" + "f"
    read = [struct.unpack_from(f"={kind}", memory, at)[0] for kind, at in zip(kinds, offsets, strict=True)]
    assert read[:5] == [x.pointer, 5, 48, 60, 1]
    assert read[5:11] == [arrays[1].pointer, 48, 1, arrays[2].pointer, 48, 1]
    assert read[11:16] == [arrays[3].pointer, 5, 48, 48, 1]
    assert abs(read[16] - 1e-5) < 1e-12
    assert all(at % struct.calcsize(kind) == 0 for kind, at in zip(kinds, offsets, strict=True))
