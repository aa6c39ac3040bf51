"""Numbers as bytes of the bytecode."""

from __future__ import annotations

import pytest

from toolchain.errors import BytecodeError
from toolchain.tileir.bytecode import encoding
from toolchain.tileir.bytecode.encoding import Reader


@pytest.mark.parametrize("bits", [0, 1, 0x7FF0000000000000, 0x8000000000000000, 0xFFF0000000000000, (1 << 64) - 1])
def test_a_number_of_f64_keeps_its_sign(bits: int) -> None:
    assert Reader(encoding.float_bits(bits)).float_bits() == bits
    unsigned = bytes((bits << 1 >> shift & 0x7F) | (0x80 if shift < 63 else 0) for shift in range(0, 70, 7))
    assert Reader(unsigned).float_bits() == bits  # as cuTile writes it
    with pytest.raises(BytecodeError, match="byte 0x0: a varint above 65 bits"):
        Reader(unsigned[:-1] + b"\x04").float_bits()
