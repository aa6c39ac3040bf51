from __future__ import annotations

import pytest

from tests.unit.cubins import cubin
from toolchain.compiling.machine_code import machine_code, same_machine_code
from toolchain.errors import ToolchainError

CODE = bytes(range(64))


@pytest.mark.parametrize(
    "other",
    [
        cubin(CODE, "another_name", shared=16),
        cubin(CODE, "x", shared=16),
        cubin(CODE, shared=16, note="ptxas 14.0"),
    ],
    ids=["a longer name", "a shorter one", "another release of a tool"],
)
def test_names_and_notes_make_no_difference(other: bytes) -> None:
    assert same_machine_code(cubin(CODE, shared=16), other)


@pytest.mark.parametrize(
    "other",
    [
        cubin(CODE[:-1] + b"\0", shared=16), cubin(CODE[:-16], shared=16), cubin(CODE, shared=32),
        cubin(CODE, shared=16, moved=8), cubin(CODE, shared=16).replace(b"attributes", b"attribUtes"),
    ],
    ids=["an instruction", "fewer instructions", "shared memory", "a relocation", "an attribute"],
)  # fmt: skip
def test_what_a_gpu_runs_makes_a_difference(other: bytes) -> None:
    assert not same_machine_code(cubin(CODE, shared=16), other)


@pytest.mark.parametrize("data", [b"", b"text", cubin(CODE)[:-1], cubin(CODE)[:100], b"\x7fELF\x02\x01" + bytes(10)])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(ToolchainError, match="no cubin"):
        machine_code(data)
