"""What a process keeps of the modules that it has prepared."""

from __future__ import annotations

import pytest

from toolchain.contract.targets import BYTECODE
from toolchain.tileir import bytecode, text
from toolchain.tileir.interpreter import prepare
from toolchain.tileir.interpreter.launches import prepared


def module(number: int, before: str = "") -> bytes:
    source = f"cuda_tile.module @m {{\n{before}\nentry @k{number}() {{ return }}\n}}"
    (parsed,) = text.parse_all(source, filename="kernel.mlir")
    return bytecode.write(parsed, BYTECODE)


def test_of_many_modules_the_last_used_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "KEPT", 2)
    one, two, three = (module(number) for number in range(3))
    first, second = prepare(one), prepare(two)
    assert prepare(one) is first  # used later than the second, which goes
    prepare(three)
    assert prepare(one) is first
    assert prepare(two) is not second


def test_a_module_with_globals_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "KEPT", 1)
    counting = module(0, "global @count <i32: 0> : tile<1xi32>")
    first = prepare(counting)
    for number in range(1, 4):
        prepare(module(number))
    assert prepare(counting) is first
